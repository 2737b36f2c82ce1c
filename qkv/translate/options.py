"""What a translation can be asked for, beyond being likely."""

from __future__ import annotations

from dataclasses import dataclass

from qkv.errors import ConfigError


@dataclass(frozen=True)
class Controls:
    """What a translation is asked to be like."""

    coverage_penalty: float = 0.0
    """What it costs to look past a part of the source; 0.2 is much."""
    no_repeats_of: int = 0
    """No sequence of so many tokens comes twice; 0 allows all."""

    def __post_init__(self) -> None:
        if not 0 <= self.coverage_penalty <= 100:
            raise ConfigError(f"the coverage penalty is {self.coverage_penalty}; it must be from 0 to 100")
        if self.no_repeats_of < 0:
            raise ConfigError(f"no_repeats_of is {self.no_repeats_of}; it must be 0 or more")
