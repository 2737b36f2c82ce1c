"""`python -m qkv` is the command `qkv`."""

import sys

from qkv.cli import main

sys.exit(main())
