"""What a server tells whoever runs it, on standard error: nothing of what clients say, and no keys."""

from __future__ import annotations

import logging
import sys

from qkv.serve.settings import Settings

LOG = logging.getLogger("qkv.serve")


def begin_telling(settings: Settings) -> None:
    """From the level that the settings name; of libraries only warnings: some would tell what passes through them."""
    logging.basicConfig(level=logging.WARNING, format="qkv: %(levelname)s: %(message)s", stream=sys.stderr)
    LOG.setLevel(settings.log.upper())
