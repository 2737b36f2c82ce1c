"""Runs the benchmarks that need nothing but this machine, with their defaults: `python -m bench`, or `make bench`."""

from __future__ import annotations

import subprocess
import sys

for name in ("prepare_speed", "train_speed", "translate_speed"):
    print(f"\n{name}", flush=True)
    subprocess.run([sys.executable, "-m", f"bench.{name}"], check=True)
