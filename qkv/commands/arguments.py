"""What several commands take."""

from __future__ import annotations

import argparse

Commands = argparse._SubParsersAction


def search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beam", type=int, metavar="N", help="width of the search; 1 is greedy (default: the run's)")
    parser.add_argument("--length-penalty", type=float, metavar="ALPHA", help="default: the run's, as trained 0.6")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:1 (default: auto)")
