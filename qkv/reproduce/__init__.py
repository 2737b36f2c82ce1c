"""The paper's numbers, from the name of a result to a table beside the paper's.

`table2.reproduce` and `table3.reproduce_table3` do it; they bring torch, and what is here does not.
"""

from __future__ import annotations

from qkv.reproduce.experiments import EXPERIMENTS, TABLE_3, Experiment, Printed, experiment, rows
from qkv.reproduce.report import Report

__all__ = ["EXPERIMENTS", "TABLE_3", "Experiment", "Printed", "Report", "experiment", "rows"]
