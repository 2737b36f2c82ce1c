"""Runs the benchmarks that need nothing but this machine, with their defaults: `python -m bench`, or `make bench`."""

from __future__ import annotations

import argparse
import subprocess
import sys

# None of its own but --help: somebody who asks what this is does not want an hour of it.
argparse.ArgumentParser(prog="python -m bench", description=__doc__).parse_args()
for name in ("prepare_speed", "train_speed", "translate_speed"):
    print(f"\n{name}", flush=True)
    subprocess.run([sys.executable, "-m", f"bench.{name}"], check=True)
