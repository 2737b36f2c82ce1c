"""The Transformer (section 3, figure 1): an encoder reads the source, a decoder writes the target."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from qkv.data.batch import Packed
from qkv.layers.attention import KeyValues
from qkv.layers.block import Stack
from qkv.layers.inputs import TokenInputs
from qkv.layers.loss import CHUNKS, Chunks
from qkv.layers.visibility import Visible, not_later, somebody, within_sentences


class State(NamedTuple):
    """What the decoder knows: the source, and the target so far. Sentences have one row of memory, however many
    hypotheses continue it."""

    memory: tuple[KeyValues, ...]
    source_segments: Tensor
    past: tuple[KeyValues, ...]
    past_segments: Tensor | None

    def select(self, hypotheses: Tensor, sentences: Tensor | None) -> State:
        """Goes on with these hypotheses, of these sentences (None: all of them)."""
        return State(
            memory=self.memory if sentences is None else tuple(part.select(sentences) for part in self.memory),
            source_segments=self.source_segments if sentences is None else self.source_segments[sentences],
            past=tuple(part.select(hypotheses) for part in self.past),
            past_segments=None if self.past_segments is None else self.past_segments[hypotheses],
        )


class EncoderDecoder(nn.Module):
    """Training is decoding with all tokens given at once: `forward` is `start` and one long `step`."""

    def __init__(self, inputs: TokenInputs, encoder: Stack, decoder: Stack) -> None:
        super().__init__()
        self.inputs = inputs
        self.encoder = encoder
        self.decoder = decoder
        self.logits: Callable[[Tensor], Tensor] = self._tied_logits
        """From the decoder's vectors to the vocabulary; may be swapped for a quicker way to the same."""
        self.loss_chunks: Chunks = CHUNKS
        """How the loss of those logits is computed; likewise."""

    def start(self, source: Packed) -> State:
        """Reads the source."""
        segments_RK = torch.ones_like(source.ids_RW) if source.segments_RW is None else source.segments_RW
        visible = None if source.segments_RW is None else within_sentences(segments_RK, segments_RK, later=True)
        x_RKD = self.inputs(source.ids_RW, source.positions_RW)
        memory_RKD, _ = self.encoder(x_RKD, source.positions_RW, visible)
        return State(self.decoder.remember(memory_RKD, source.positions_RW), segments_RK, (), None)

    def read(self, target: Packed, state: State) -> tuple[Tensor, State]:
        """Reads on in the target: the last layer's vector at each of its positions, and the state after it."""
        x_RWD, past = self.decoder(
            self.inputs(target.ids_RW, target.positions_RW),
            target.positions_RW,
            _visible_target(target, state),
            state.past,
            state.memory,
            _visible_source(target, state),
        )
        segments = target.segments_RW
        if segments is not None and state.past_segments is not None:
            segments = torch.cat([state.past_segments, segments], dim=1)
        return x_RWD, state._replace(past=past, past_segments=segments)

    def step(self, target: Packed, state: State) -> tuple[Tensor, State]:
        """The logits of what follows each position of the target, and the state after it."""
        x_RWD, state = self.read(target, state)
        return self.logits(x_RWD), state

    def forward(self, source: Packed, target: Packed) -> Tensor:
        logits_RWV, _ = self.step(target, self.start(source))
        return logits_RWV

    def _tied_logits(self, x_RWD: Tensor) -> Tensor:
        return functional.linear(x_RWD, self.inputs.weight_VD)


def _visible_target(target: Packed, state: State) -> Visible | None:
    looking = target.ids_RW.size(1)
    past = state.past[0].key_RHKE.size(2) if state.past else 0
    if target.segments_RW is None:
        # A single new token sees all before it and itself: no mask is needed.
        return None if looking == 1 else Visible(not_later(looking, past + looking, target.ids_RW.device))
    seen_RK = target.segments_RW
    if state.past_segments is not None:
        seen_RK = torch.cat([state.past_segments, seen_RK], dim=1)
    return within_sentences(target.segments_RW, seen_RK, later=False)


def _visible_source(target: Packed, state: State) -> Visible:
    if target.segments_RW is None:
        return Visible(somebody(state.source_segments))
    return within_sentences(target.segments_RW, state.source_segments, later=True)
