"""A model made ready to write: fused products, its own precision, and the attention of a search that keeps a tree."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from qkv.data.batch import one_sentence_a_row
from qkv.engines.gpu.table import Read, Table, score_precision
from qkv.layers import branches, candidates
from qkv.layers.attention import MultiHeadAttention
from qkv.layers.block import Block
from qkv.layers.branches import LookAcross, LookBack, Slots
from qkv.layers.candidates import Best
from qkv.layers.positions import LearnedPositions
from qkv.models.build import use_gpu_parts
from qkv.models.encoder_decoder import EncoderDecoder


class JoinedProjections:
    """Several projections as one product whose weights lie joined already: the quicker twin of `attention.apart`."""

    def __init__(self, projections: Sequence[nn.Linear]) -> None:
        self._widths = [one.out_features for one in projections]
        biases = [one.bias for one in projections if one.bias is not None]
        self._weight = torch.cat(tuple(one.weight for one in projections)).detach()
        self._bias = torch.cat(tuple(biases)).detach() if biases else None

    def __call__(self, x_RWD: Tensor, projections: Sequence[nn.Linear]) -> tuple[Tensor, ...]:
        assert len(projections) == len(self._widths)
        return torch.split(functional.linear(x_RWD, self._weight, self._bias), self._widths, dim=-1)


class Decoder:
    """A copy of a model that reads sources, and says what may follow the hypotheses of a table."""

    def __init__(self, model: EncoderDecoder, *, precision: torch.dtype, kernels: bool) -> None:
        self._model = copy.deepcopy(model).to(precision).eval()
        self._weight_VD = self._model.inputs.weight_VD
        self.device = self._weight_VD.device
        self._look_back: LookBack = branches.look_back
        self._look_across: LookAcross = branches.look_across
        self.best: Best = candidates.best_candidates
        if kernels:
            from qkv.layers.gpu import branches as gpu_branches
            from qkv.layers.gpu import candidates as gpu_candidates

            use_gpu_parts(self._model)
            self._look_back, self._look_across = gpu_branches.look_back, gpu_branches.look_across
            self.best = gpu_candidates.best_candidates
        self._blocks = [block for block in self._model.decoder.blocks if isinstance(block, Block)]
        self._join()

    @property
    def vocabulary(self) -> int:
        return self._weight_VD.size(0)

    def table(self, *, sentences: int, size: int, width: int, keep: int) -> Table:
        """An empty table for so many sentences, of fewer positions than `size` on either side."""
        attention = self._blocks[0].self_attention
        positions = self._model.inputs.positions
        last = positions.weight_KD.size(0) if isinstance(positions, LearnedPositions) else size
        # Nobody gets beyond the positions there are: whoever asks for translations knows the limit.
        place_T = torch.arange(size, device=self.device).clamp_max(last - 1)
        return Table.empty(
            sentences=sentences,
            size=size,
            width=width,
            keep=keep,
            layers=len(self._blocks),
            heads=attention.heads,
            key_width=attention.key.out_features // attention.heads,
            value_width=attention.value.out_features // attention.heads,
            position_TD=positions(place_T.unsqueeze(0)).expand(1, size, self._weight_VD.size(1))[0],
            vocabulary=self.vocabulary,
            like=self._weight_VD,
        )

    def free_slots(self) -> int:
        """How many positions' keys and values, of all layers, the device's free memory would hold."""
        if self.device.type != "cuda":
            return sys.maxsize
        free, _ = torch.cuda.mem_get_info(self.device)
        attention = self._blocks[0].self_attention
        numbers = len(self._blocks) * (attention.key.out_features + attention.value.out_features)
        return int(free) // (numbers * self._weight_VD.element_size())

    def read(self, sources: Sequence[Sequence[int]]) -> Read:
        """Reads these sources, each with its end."""
        # What stands beyond a source's end is never looked at.
        source = one_sentence_a_row([[*ids] for ids in sources], padding=0)
        assert source.segments_RW is not None
        length_N = source.segments_RW.sum(1)
        memory = self._model.start(source.to(self.device)).memory
        return Read(
            torch.stack([one.key_RHKE.transpose(1, 2) for one in memory], dim=1),
            torch.stack([one.value_RHKU.transpose(1, 2) for one in memory], dim=1),
            length_N.to(self.device, non_blocking=True),
        )

    def logits(self, table: Table) -> Tensor:
        """Of what follows each hypothesis's last token, whose keys and values are added to the table."""
        N, B = table.last_NB.shape
        R = N * B
        positions_R1 = table.written_N.unsqueeze(1).expand(N, B).reshape(R, 1)
        # As `inputs.embed` has it, with positions that are known beforehand.
        token_RD = functional.embedding(table.last_NB.view(R), self._weight_VD) * self._weight_VD.size(1) ** 0.5
        x_RD = (token_RD + functional.embedding(positions_R1.view(R), table.position_TD)).to(token_RD.dtype)
        x_RWD, beside_RWD = x_RD.unsqueeze(1), None
        for number, block in enumerate(self._blocks):
            within = partial(self._within, table, number, positions_R1)
            across = partial(self._across, table, number, positions_R1)
            x_RWD, beside_RWD = block.through(x_RWD, beside_RWD, within, across)
        _, y_RWD = self._model.decoder.last.before(x_RWD, beside_RWD)
        return self._logits(y_RWD.squeeze(1))

    def _within(
        self, table: Table, number: int, positions_R1: Tensor, attention: MultiHeadAttention, x_R1D: Tensor
    ) -> Tensor:
        query_RHWE, (key_RHKE, value_RHKU) = attention.look(x_R1D, positions_R1)
        query_NBHE, key_NBHE, value_NBHU = (_by_sentence(part, table) for part in (query_RHWE, key_RHKE, value_RHKU))
        past = Slots(table.past_key_NLSHE[:, number], table.past_value_NLSHU[:, number])
        mixed = self._look_back(query_NBHE, key_NBHE, value_NBHU, past, table.lane_NBT, table.written_N)
        return _written(attention, mixed)

    def _across(
        self, table: Table, number: int, positions_R1: Tensor, attention: MultiHeadAttention, x_R1D: Tensor
    ) -> Tensor:
        query_NBHE = _by_sentence(attention.ask(x_R1D, positions_R1), table)
        memory = Slots(table.memory_key_NLKHE[:, number], table.memory_value_NLKHU[:, number])
        return _written(attention, self._look_across(query_NBHE, memory, table.length_N))

    def _logits(self, x_RD: Tensor) -> Tensor:
        precision = score_precision(x_RD.dtype)
        if x_RD.is_cuda and x_RD.dtype != precision:
            return torch.mm(x_RD, self._weight_VD.T, out_dtype=precision)
        return functional.linear(x_RD, self._weight_VD).to(precision)

    def _join(self) -> None:
        for part in self._model.modules():
            if isinstance(part, Block):
                attention = part.self_attention
                attention.project = JoinedProjections((attention.query, attention.key, attention.value))
        across = [block.cross_attention for block in self._blocks if block.cross_attention is not None]
        self._model.decoder.project = JoinedProjections([one for each in across for one in (each.key, each.value)])


def _by_sentence(part_RH1E: Tensor, table: Table) -> Tensor:
    N, B = table.last_NB.shape
    _, H, _, E = part_RH1E.shape
    return part_RH1E.view(N, B, H, E)


def _written(attention: MultiHeadAttention, mixed_NBHU: Tensor) -> Tensor:
    y_R1D: Tensor = attention.output(mixed_NBHU.flatten(2).flatten(0, 1).unsqueeze(1))
    return y_R1D
