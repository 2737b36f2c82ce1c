"""What is asked of the engine, and what it answers: plain values that travel between two processes as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from qkv.translate import USUAL_CUTS, Cuts, Markup


@dataclass(frozen=True)
class Order:
    """Texts, and how they are wanted; a source of None is found out, for each text."""

    texts: list[str]
    source: str | None
    target: str
    markup: Markup = "none"
    alternatives: int = 0
    glossary: dict[str, str] | None = None
    """Terms and what they become."""
    untouched: tuple[str, ...] = ()
    """Names of tags whose content stays as it is."""
    cuts: Cuts = USUAL_CUTS
    typeset: bool = False
    """Whether the texts are parts of something that is typeset; else they tell themselves."""
    streamed: bool = False
    """Whether the one text is wanted as it grows, rather than the best that can be found."""
    explained: bool = False
    """Whether the one text is wanted sentence by sentence, with what is known of its words."""
    prefix: str | None = None
    """What an explained translation has to begin with; it is wanted in versions that go on with different words."""
    inspected: bool = False
    """Whether the one text is a sentence to be looked into."""
    vectors: dict[str, Any] | None = None
    """Of what is looked into, the one head that is wanted: its use, layer and head."""

    @property
    def batched(self) -> bool:
        """Whether its sentences are translated together with those of others; else somebody watches."""
        return not self.streamed and not self.inspected and self.prefix is None


_BYTES_A_TOKEN = 3


def size(text: str) -> int:
    """About how many tokens a text has: what may wait is counted before anybody has cut it into tokens.

    Bytes are counted, as characters that a model does not know are as many tokens as they have bytes.
    """
    return len(text.encode()) // _BYTES_A_TOKEN + 1


class Answer(NamedTuple):
    """A translation, others of the same text, and the language that it was in."""

    text: str
    alternatives: tuple[str, ...]
    source: str
    confidence: float
    """How sure the language is, from 0 to 1."""


def as_message(number: int, order: Order) -> dict[str, Any]:
    return {"number": number, "order": asdict(order)}


def from_message(message: dict[str, Any]) -> Order:
    values = dict(message["order"])
    cuts = values["cuts"]
    return Order(
        **values
        | {
            "untouched": tuple(values["untouched"]),
            "cuts": Cuts(cuts["ends"], tuple(cuts["tags"]), tuple(cuts["inline"])),
        }
    )
