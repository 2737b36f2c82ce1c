"""The processors of this machine, as far as this process may use them."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Those that a container or a queue left to this process, where the system can say so; else all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
