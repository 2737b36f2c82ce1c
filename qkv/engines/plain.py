"""The model as it was trained, on any device that torch knows: the engine that all others must agree with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor

from qkv.data.batch import Packed, one_sentence_a_row
from qkv.engines.looks import Looks
from qkv.layers.attention import MultiHeadAttention, recording
from qkv.layers.block import Block
from qkv.layers.kernels import Recording
from qkv.models.encoder_decoder import EncoderDecoder, State
from qkv.search.engine import Floats, Integers


class Reading(NamedTuple):
    """What the decoder knows, and whether somebody wants to know where it looks."""

    state: State
    looks: bool

    @torch.inference_mode()
    def select(self, hypotheses_R: Integers, sentences_N: Integers | None) -> Reading:
        device = self.state.source_segments.device
        sentences = None if sentences_N is None else torch.from_numpy(sentences_N).to(device)
        return self._replace(state=self.state.select(torch.from_numpy(hypotheses_R).to(device), sentences))


class Logits:
    """Continuations as a tensor of logits that become probabilities when they are asked for."""

    def __init__(self, logits_RV: Tensor, looked_RK: Floats | None) -> None:
        self._logits_RV = logits_RV
        self._normaliser_R1 = logits_RV.logsumexp(1, keepdim=True)
        self.looked_RK = looked_RK

    @torch.inference_mode()
    def forbid(self, rows: Integers, tokens: Integers) -> None:
        device = self._logits_RV.device
        self._logits_RV[torch.from_numpy(rows).to(device), torch.from_numpy(tokens).to(device)] = -torch.inf

    @torch.inference_mode()
    def best(self, count: int) -> tuple[Floats, Integers]:
        value_RC, token_RC = self._logits_RV.topk(min(count, self._logits_RV.size(1)))
        return (value_RC - self._normaliser_R1).cpu().numpy(), token_RC.cpu().numpy()

    @torch.inference_mode()
    def of(self, rows: Integers, tokens: Integers) -> Floats:
        device = self._logits_RV.device
        row_P = torch.from_numpy(rows).to(device)
        value_P = self._logits_RV[row_P, torch.from_numpy(tokens).to(device)] - self._normaliser_R1[row_P, 0]
        return cast(Floats, value_P.cpu().numpy())

    @torch.inference_mode()
    def everything(self) -> Floats:
        return cast(Floats, (self._logits_RV - self._normaliser_R1).cpu().numpy())


class PlainEngine:
    """An engine over the model itself."""

    def __init__(self, model: EncoderDecoder, padding: int, *, looks: Looks | None = None) -> None:
        looks = looks or usual_looks(model)
        self.model = model
        self.looks_when_read = looks.when_read
        self._padding = padding
        self._heads = looks.heads
        self._device = model.inputs.weight_VD.device

    @torch.inference_mode()
    def start(
        self,
        sources: Sequence[Sequence[int]],
        *,
        wanted: Sequence[Collection[int]] = (),  # noqa: ARG002 - nothing is left out here
        looks: bool = False,
    ) -> Reading:
        packed = one_sentence_a_row([[*source] for source in sources], self._padding)
        return Reading(self.model.start(packed.to(self._device)), looks)

    @torch.inference_mode()
    def step(self, token_R: Integers, reading: Reading) -> tuple[Logits, Reading]:
        state = reading.state
        written = state.past[0].key_RHKE.size(2) if state.past else 0
        ids_RW = torch.from_numpy(token_R).to(self._device).unsqueeze(1)
        target = Packed(ids_RW, torch.full_like(ids_RW, written), None)
        if reading.looks:
            with recording(self.model, {cross_attention(layer) for layer, _ in self._heads}) as recordings:
                logits_RWV, state = self.model.step(target, state)
            looked_RK = self._mean_of_heads(recordings, len(token_R))
        else:
            logits_RWV, state = self.model.step(target, state)
            looked_RK = None
        # Half-precision logits are too coarse to tell close tokens apart once they are summed.
        return Logits(logits_RWV[:, -1].float(), looked_RK), Reading(state, reading.looks)

    def _mean_of_heads(self, recordings: dict[str, Recording], rows: int) -> Floats:
        looked = []
        for layer, head in self._heads:
            weight_RHWK = recordings[cross_attention(layer)].weight_RHWK
            assert weight_RHWK is not None
            # The hypotheses of a sentence look at its memory as if they were positions of one row.
            looked.append(weight_RHWK[:, head].reshape(rows, -1))
        return cast(Floats, torch.stack(looked).mean(0).float().cpu().numpy())


def cross_attention(layer: int) -> str:
    """What a model calls its decoder's attention to the source, of this layer."""
    return f"decoder.blocks.{layer}.cross_attention"


def usual_looks(model: EncoderDecoder) -> Looks:
    """Where nobody has measured which heads align, those of the layer that does best as a rule."""
    layers = len(model.decoder.blocks)
    layer = max(0, layers - 2)
    heads = cast(MultiHeadAttention, cast(Block, model.decoder.blocks[layer]).cross_attention).heads
    return Looks([(layer, head) for head in range(heads)])
