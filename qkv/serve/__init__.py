"""A server that existing clients already speak to: `qkv serve` answers on 127.0.0.1:5000."""
