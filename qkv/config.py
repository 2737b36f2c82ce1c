"""Every setting of qkv, as frozen dataclasses; no default lives anywhere else.

The defaults are the paper's base model (sections 3 and 5); `recipes` names the other combinations.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from qkv.errors import ConfigError
from qkv.values import at_least, between, make_floats, require_finite, within


@dataclass(frozen=True)
class ModelConfig:
    """An encoder-decoder (section 3): its sizes, and which row of each table in `models.choices` it takes."""

    width: int = 512
    heads: int = 8
    key_width: int | None = None
    """Width of one head's queries and keys (d_k); None divides the width among the heads."""
    value_width: int | None = None
    """Width of one head's values (d_v); None divides the width among the heads."""
    hidden: int = 2048
    encoder_layers: int = 6
    decoder_layers: int = 6
    dropout: float = 0.1
    residual: Literal["post", "pre"] = "post"
    norm: Literal["layer", "rms"] = "layer"
    positions: Literal["sinusoidal", "learned", "rotary"] = "sinusoidal"
    feed_forward: Literal["relu", "gated"] = "relu"
    query_key_norm: Literal["none", "rms"] = "none"
    projection: Literal["plain", "biased"] = "plain"
    """Attention's four projections: plain matrices as the paper writes them, or with a bias as others do."""
    initial: Literal["xavier", "silent"] = "xavier"
    """The first weights: all drawn alike, or with zeros in the last matrix of every sub-layer, which so says nothing
    until it has learned something."""
    longest: int = 1024
    """The most positions a sentence may have where positions are learned; the others know no end."""

    def __post_init__(self) -> None:
        require_finite("model", self)
        for name in ("width", "heads", "hidden", "longest"):
            within(1, 1 << 20, f"model.{name}", getattr(self, name))
        for name in ("encoder_layers", "decoder_layers"):
            within(1, 1000, f"model.{name}", getattr(self, name))
        between(0, 1, "model.dropout", self.dropout)
        if None in (self.key_width, self.value_width) and self.width % self.heads:
            step = math.lcm(self.heads, 2)
            nearest = step * max(1, self.width // step)
            raise ConfigError(f"model.width {self.width} does not divide into {self.heads} heads; try {nearest}")
        for name, head_width in (("key_width", self.key_width), ("value_width", self.value_width)):
            if head_width is not None:
                within(1, 1 << 20, f"model.{name}", head_width)
        if self.width % 2:
            raise ConfigError(f"model.width {self.width} is odd; positions come in pairs of sine and cosine")
        if self.positions == "rotary" and self.head_key_width % 2:
            raise ConfigError(
                f"rotary positions turn pairs: a head's keys are {self.head_key_width} wide, an odd number"
            )
        make_floats(self)

    @property
    def head_key_width(self) -> int:
        return self.key_width or self.width // self.heads

    @property
    def head_value_width(self) -> int:
        return self.value_width or self.width // self.heads


@dataclass(frozen=True)
class TextConfig:
    """How text becomes ids: one joint subword vocabulary for both languages (section 5.1)."""

    vocabulary: int = 37_000
    algorithm: Literal["bpe", "unigram"] = "bpe"
    sample_lines: int = 2_000_000
    """Lines of both languages together that the vocabulary is learned from, drawn evenly from the corpus."""
    segmentations: int = 1
    """How many ways each training pair is cut into subwords; more than 1 samples them, and needs unigram."""
    sampling_alpha: float = 0.1
    source_language: str | None = None
    target_language: str | None = None
    directions: str | None = None
    """From which languages into which, such as en-de,de-en, where there are several; a tag says which is asked for."""
    tagged: bool = False
    """Have that tag where there is one direction alone, too: a model that reads one was taught several before."""
    domains: str | None = None
    """Kinds of text that have a tag as well, such as docs,laws."""
    reserved: int = 16
    """Spare control symbols, so that a use found later needs no new vocabulary."""
    right_to_left: bool = False
    """Learn to write translations from their last subword to their first: a second opinion to rerank by."""

    def __post_init__(self) -> None:
        require_finite("text", self)
        at_least(1, "text.sample_lines", self.sample_lines)
        at_least(1, "text.segmentations", self.segmentations)
        within(0, 10_000, "text.reserved", self.reserved)
        within(1, 1_000_000, "text.vocabulary", self.vocabulary)
        at_least(0, "text.sampling_alpha", self.sampling_alpha)
        if self.segmentations > 1 and self.algorithm != "unigram":
            raise ConfigError("text.segmentations samples subwords, which only text.algorithm=unigram can do")
        make_floats(self)


@dataclass(frozen=True)
class DataConfig:
    """Which pairs are kept, and how they are laid into rows."""

    row_width: int = 128
    """Positions in a row, on each side; a sentence longer than that is left out of training."""
    held_out: int = 1000
    """Pairs kept from training for validation when no validation files are given."""
    max_bytes: int = 4000
    """A line longer than this on either side is monstrous: a page or a binary, not a sentence."""
    max_ratio: float = 3.0
    """The longer side may have this many times the bytes of the shorter, with some slack for short lines."""
    keep_copies: bool = False
    keep_duplicates: bool = False
    drop_test_lines: bool = False
    """Leave out training pairs that stand in a test set, instead of only warning."""
    check_language: bool = False
    """Leave out pairs of which a side is more likely in another of the corpus's languages than in its own."""
    least_letters: float = 0.0
    """The share of letters among what is no space, on each side, without which a line is no language."""
    typography: Literal["kept", "plain"] = "kept"
    """Quotation marks and apostrophes: learned as they are, or all plain, as a typewriter has them; those of a
    translation are then printed where its source is typeset, and plain elsewhere."""

    def __post_init__(self) -> None:
        require_finite("data", self)
        within(4, 1 << 16, "data.row_width", self.row_width)
        at_least(1, "data.held_out", self.held_out)
        at_least(1, "data.max_bytes", self.max_bytes)
        if self.max_ratio < 1:
            raise ConfigError(f"data.max_ratio is {self.max_ratio}; a ratio of the longer to the shorter is at least 1")
        between(0, 1, "data.least_letters", self.least_letters)
        make_floats(self)


@dataclass(frozen=True)
class TrainingConfig:
    """How the model learns (sections 5.2 to 5.4)."""

    steps: int = 100_000
    tokens_per_batch: int | Literal["auto"] = 25_000
    """Target positions of one step, all processes and accumulated parts together; auto takes what fits the memory."""
    row_width: int | None = None
    """Positions in a row of a training batch, on each side, where that is not `data.row_width`; pairs that do not
    fit are left out of training, and held-out ones are not."""
    ramp_steps: int = 0
    """Steps whose batches are smaller than that, and grow; 0 has all alike."""
    ramp_sizes: int = 3
    """Sizes that a growing batch has, each half the next: of 3, a quarter, a half and the whole."""
    accumulate: int = 1
    """Parts a step's batch is computed in, to fit memory; the step is the same."""
    optimizer: Literal["adam", "adamw", "muon"] = "adam"
    """Muon moves the matrices of the layers, and leaves the rest to AdamW."""
    schedule: Literal["paper", "linear", "constant", "free"] = "paper"
    """How the learning rate goes; `free` has it stay, as `constant`, and keeps a mean of the weights of all steps, with
    which the run is validated and saved (Schedule-Free, around any optimizer)."""
    learning_rate: float = 1.0
    """The peak; under the paper's schedule, a factor on its equation 3."""
    rest_rate: float = 1.0
    """Under Muon, the learning rate of what it leaves to AdamW, as a share of its own."""
    warmup_steps: int = 4000
    decay_from: float = 0.4
    """The linear schedule is flat up to this share of the steps, then falls in a line to zero."""
    beta1: float = 0.9
    """Adam's momentum; free of a schedule, how near to their mean the weights are that gradients are taken at."""
    beta2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    """Of matrices: AdamW and Muon take this share, times the learning rate, off them each step; Adam adds as much of
    them to their gradient."""
    clip: float | None = None
    """The largest norm of the whole gradient; the paper does not clip."""
    label_smoothing: float = 0.1
    agreement: float = 0.0
    """By how much it counts that two readings of a sentence, from which dropout leaves out other numbers, agree: the α
    of R-Drop, 5 in its paper. Above 0, a step with dropout takes twice as long."""
    dropout_after: int = 0
    """The last step without dropout: less early, when there is nothing yet that could be learned by heart."""
    final: Literal["last", "checkpoints", "moving"] = "checkpoints"
    """The finished run's weights: the last ones, the mean of the last checkpoints, or the moving average."""
    average_checkpoints: int = 5
    moving_average: float = 0.999
    """Decay a step of the moving average, which is kept only where `final` asks for it."""
    save_every: int = 1500
    keep_checkpoints: int = 5
    validate_every: int = 1500
    validation_sentences: int = 500
    """How many held-out sentences are translated for BLEU at each validation; 0 leaves BLEU out."""
    patience: int | None = None
    """Stop after this many validations in a row without a better loss. Where it is set, the run ends with the weights
    of its best validation, stopped or not, and `final` tells what is made of them and of those before."""
    report_every: int = 100
    tolerated_bad_steps: int = 3
    """Steps in a row with a loss or gradient that is not finite before training is rolled back."""
    tolerated_rise: float | None = 2.0
    """How far the median loss of the last 51 steps may be above the lowest it was before training is rolled back."""
    rollbacks: int = 3
    """How often a run goes back to its last good checkpoint with half the learning rate before it stops."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    kernels: Literal["auto", "fast", "plain"] = "auto"
    """On a GPU, parts written for it and a step that is one graph; or the plain ones, which are slower."""
    device: str = "auto"
    parallel: Literal["auto", "none", "ddp", "fsdp"] = "auto"
    """How several processes train together: each with all weights (ddp, which auto takes), or with a part of them."""
    seed: int = 1
    tensorboard: bool = False

    def __post_init__(self) -> None:
        require_finite("training", self)
        for name in (
            "steps", "accumulate", "warmup_steps", "average_checkpoints", "save_every",
            "keep_checkpoints", "validate_every", "report_every", "tolerated_bad_steps",
        ):  # fmt: skip
            at_least(1, f"training.{name}", getattr(self, name))
        if self.tokens_per_batch != "auto":
            at_least(1, "training.tokens_per_batch", self.tokens_per_batch)
        if self.row_width is not None:
            within(4, 1 << 16, "training.row_width", self.row_width)
        within(2, 8, "training.ramp_sizes", self.ramp_sizes)
        for name in (
            "validation_sentences",
            "weight_decay",
            "rollbacks",
            "ramp_steps",
            "agreement",
            "dropout_after",
        ):
            at_least(0, f"training.{name}", getattr(self, name))
        between(0, 1 << 32, "training.seed", self.seed)
        for name in ("label_smoothing", "moving_average", "decay_from", "beta1", "beta2"):
            between(0, 1, f"training.{name}", getattr(self, name))
        if self.schedule == "free" and self.final == "moving":
            raise ConfigError(
                "training.schedule=free keeps a mean of its own; set training.final to last or checkpoints"
            )
        # Without an epsilon, what has had no gradient yet would be moved by 0 / 0.
        for name in ("learning_rate", "rest_rate", "epsilon"):
            value = getattr(self, name)
            if value <= 0:
                raise ConfigError(f"training.{name} is {value}; it must be above 0")
        if self.clip is not None and self.clip <= 0:
            raise ConfigError(f"training.clip is {self.clip}; give a norm above 0, or none")
        if self.tolerated_rise is not None and self.tolerated_rise <= 0:
            raise ConfigError(f"training.tolerated_rise is {self.tolerated_rise}; it must be above 0, or none")
        if self.patience is not None:
            at_least(1, "training.patience", self.patience)
        make_floats(self)


@dataclass(frozen=True)
class SearchConfig:
    """How translations are looked for (section 6.1)."""

    beam: int = 4
    length_penalty: float = 0.6
    extra_length: int = 50
    """A translation may have this many tokens more than its source."""
    batch_tokens: int = 4096
    """Positions translated at once, padding and beams included."""
    longest_source: int = 1024
    """A longer source is cut here, with a warning."""

    def __post_init__(self) -> None:
        require_finite("search", self)
        within(1, 1000, "search.beam", self.beam)
        for name in ("batch_tokens", "longest_source"):
            at_least(1, f"search.{name}", getattr(self, name))
        within(0, 10_000, "search.extra_length", self.extra_length)
        between(0, 100, "search.length_penalty", self.length_penalty)
        make_floats(self)


@dataclass(frozen=True)
class Config:
    """All settings of a run, kept in its config.json."""

    model: ModelConfig = field(default_factory=ModelConfig)
    text: TextConfig = field(default_factory=TextConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    search: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        widest = max(self.data.row_width, self.row_width)
        if self.model.positions == "learned" and widest > self.model.longest:
            name = "data.row_width" if widest == self.data.row_width else "training.row_width"
            raise ConfigError(
                f"{name} {widest} is more than the {self.model.longest} learned positions; "
                f"set model.longest to at least {widest}"
            )
        if self.training.agreement and not self.model.dropout:
            raise ConfigError("training.agreement compares what dropout does to two readings, and model.dropout is 0")
        tokens, parts = self.training.tokens_per_batch, self.training.accumulate
        if tokens != "auto" and tokens < self.row_width * parts:
            raise ConfigError(
                f"training.tokens_per_batch {tokens} is less than a row of "
                f"{self.row_width} positions for each of {parts} parts"
            )
        if tokens != "auto" and self.fewest_rows < parts:
            raise ConfigError(
                f"training.ramp_sizes {self.training.ramp_sizes} begins with batches of {self.fewest_rows} rows, too "
                f"few for {parts} parts; have fewer sizes, or more training.tokens_per_batch"
            )

    @property
    def row_width(self) -> int:
        """Positions in a row of a training batch, on each side."""
        return self.training.row_width or self.data.row_width

    @property
    def rows_a_step(self) -> int:
        """Rows of a step's batch, all processes together; `auto` is a number before anybody asks."""
        tokens = self.training.tokens_per_batch
        assert tokens != "auto"
        return tokens // self.row_width

    @property
    def fewest_rows(self) -> int:
        """Rows of the smallest batch, where batches grow."""
        return self.rows_a_step >> (self.training.ramp_sizes - 1 if self.training.ramp_steps else 0)

    def with_changes(self, **sections: Mapping[str, Any]) -> Config:
        """The same settings but for these: `config.with_changes(model={"dropout": 0.3})`."""
        return dataclasses.replace(
            self,
            **{name: dataclasses.replace(getattr(self, name), **changes) for name, changes in sections.items()},
        )
