"""What one sentence's translation must keep to: a state that every token moves on.

A rule may say no to a token, and may bring tokens to the table that the model would not think of. Rules never change,
they are followed by others: hypotheses share them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


class Rule(Protocol):
    """What may follow what was written so far."""

    @property
    def met(self) -> int:
        """How many of the tokens that must be written are; hypotheses compete among those that are equally far."""
        ...

    @property
    def left(self) -> int:
        """How many tokens must still be written before the end, at least."""
        ...

    @property
    def is_bound(self) -> bool:
        """Whether something was begun that has to be finished before anything else may come."""
        ...

    def vocabulary(self) -> Collection[int]:
        """All tokens that it may ever offer."""
        ...

    def offers(self) -> Collection[int]:
        """Tokens that have to be looked at, however unlikely."""
        ...

    def allows(self, token: int) -> bool:
        """Whether this token may come next."""
        ...

    def after(self, token: int) -> Rule:
        """The rule for what follows this token."""
        ...


@dataclass(frozen=True)
class Prefix:
    """The translation begins with these tokens."""

    tokens: tuple[int, ...]
    met: int = 0
    is_bound = False

    @property
    def left(self) -> int:
        return len(self.tokens) - self.met

    def vocabulary(self) -> Collection[int]:
        return self.tokens

    def offers(self) -> Collection[int]:
        return self.tokens[self.met : self.met + 1]

    def allows(self, token: int) -> bool:
        return not self.left or token == self.tokens[self.met]

    def after(self, token: int) -> Prefix:  # noqa: ARG002
        return Prefix(self.tokens, self.met + 1) if self.left else self


@dataclass(frozen=True)
class NoRepeats:
    """No sequence of so many tokens comes twice."""

    size: int
    spared: Collection[int] = ()
    """Tokens that may come at any time, because something else has to be written with them."""
    written: tuple[int, ...] = ()
    met = 0
    left = 0
    is_bound = False

    def vocabulary(self) -> Collection[int]:
        return ()

    def offers(self) -> Collection[int]:
        return ()

    def allows(self, token: int) -> bool:
        size, written = self.size, self.written
        if len(written) < size or token in self.spared:
            return True
        last = (*written[len(written) - size + 1 :], token)
        return all(written[place : place + size] != last for place in range(len(written) - size + 1))

    def after(self, token: int) -> NoRepeats:
        return NoRepeats(self.size, self.spared, (*self.written, token))


@dataclass(frozen=True)
class AtLeast:
    """The translation has at least this many tokens before its end."""

    end: int
    left: int
    met = 0
    is_bound = False

    def vocabulary(self) -> Collection[int]:
        return ()

    def offers(self) -> Collection[int]:
        return ()

    def allows(self, token: int) -> bool:
        return not self.left or token != self.end

    def after(self, token: int) -> AtLeast:  # noqa: ARG002
        return AtLeast(self.end, max(0, self.left - 1))


@dataclass(frozen=True)
class Together:
    """Several rules at once."""

    rules: tuple[Rule, ...]

    @property
    def met(self) -> int:
        return sum(rule.met for rule in self.rules)

    @property
    def left(self) -> int:
        # Whoever only counts tokens is content with those that others need.
        needed = sum(rule.left for rule in self.rules if rule.vocabulary())
        return max([needed, *(rule.left for rule in self.rules if not rule.vocabulary())])

    @property
    def is_bound(self) -> bool:
        return any(rule.is_bound for rule in self.rules)

    def vocabulary(self) -> Collection[int]:
        return {token for rule in self.rules for token in rule.vocabulary()}

    def offers(self) -> Collection[int]:
        return {token for rule in self.rules for token in rule.offers()}

    def allows(self, token: int) -> bool:
        return all(rule.allows(token) for rule in self.rules)

    def after(self, token: int) -> Together:
        return Together(tuple(rule.after(token) for rule in self.rules))


def together(rules: Sequence[Rule]) -> Rule | None:
    """One rule that is all of these; None where there is none."""
    if len(rules) < 2:
        return rules[0] if rules else None
    return Together(tuple(rules))


def kept(rule: Rule, ids: Sequence[int]) -> bool:
    """Whether a translation that nobody held to a rule keeps to it."""
    for token in ids:
        if not rule.allows(token):
            return False
        rule = rule.after(token)
    return not rule.left
