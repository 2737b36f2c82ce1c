"""From a run to a model that translates on any CPU without torch: `export(run, output, precision="int8")`."""

from qkv.export.directory import export

__all__ = ["export"]
