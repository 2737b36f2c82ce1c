"""To and from other systems' files."""
