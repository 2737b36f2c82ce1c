"""A server in earnest: fuzzed by its own description, overloaded, left, stopped and used for an hour.

`make endure`, or `python -m tests.serve.endure --soak 60` for a shorter one; figures of a run are to be compared with
one another, as load and server share the machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import toy
from tests.serve.served import Served, serving

# The others want a server that refuses what it was not told of; clients send nulls, forms with GET, and much besides.
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
_EXAMPLES = 350
"""Of each address: more than 10,000 in all."""


def fuzzed(served: Served, folder: Path, *, examples: int) -> subprocess.CompletedProcess[str]:
    """What schemathesis makes of all that the OpenAPI document allows, and of much else."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/openapi.json", "--checks", CHECKS]
    options = ["--max-examples", str(examples), "--phases", "coverage,fuzzing,stateful", "--seed", "1"]
    return subprocess.run([*command, *options, "--continue-on-failure"], cwd=folder, capture_output=True, text=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=_EXAMPLES, help="of each address (default: %(default)s)")
    parser.add_argument("--stops", type=int, default=50, help="times a server is stopped (default: %(default)s)")
    parser.add_argument("--soak", type=float, default=3600.0, help="seconds (default: %(default)s)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        model = _model(Path(name))
        with serving(model) as served:
            ran = fuzzed(served, Path(name), examples=chosen.examples)
            print(ran.stdout[ran.stdout.find("FAILURES" if ran.returncode else "SUMMARY") :])
        load = [sys.executable, "-m", "bench.serve_load", "--model", str(model), "--from", "en", "--to", "fr"]
        trials = ["--trials", "capacity,overload,disconnects,slow,endless,stop,soak"]
        times = ["--stops", str(chosen.stops), "--soak", str(chosen.soak)]
        loaded = subprocess.run([*load, *trials, *times], env={**os.environ, "PYTHONUNBUFFERED": "1"})
    return ran.returncode or loaded.returncode


def _model(folder: Path) -> Path:
    """A small one that has learned to turn words round."""
    from qkv.export import export
    from qkv.training import train

    with toy.one_thread():
        train([toy.write_tsv(folder / "language.tsv", toy.pairs(3000))], folder / "run", toy.LEARNS)
    export(folder / "run", folder / "model", precision="int8")
    return folder / "model"


if __name__ == "__main__":
    sys.exit(main())
