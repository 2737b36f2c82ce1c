"""The three graphs of an exported model: reading a source, writing a token more, and choosing among the vocabulary.

Embeddings are looked up outside, in a table that all three share: what goes in are vectors.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import cast

from torch import nn

from qkv.engines.looks import Head
from qkv.export.graph import Graph
from qkv.export.parts import KeyValues, Look, LookOut, Parts
from qkv.export.products import Array, Matrix, Multiply, Precision
from qkv.layers.attention import MultiHeadAttention
from qkv.layers.block import Block
from qkv.models.encoder_decoder import EncoderDecoder


def encoder_graph(model: EncoderDecoder, precision: Precision) -> bytes:
    """From the source's vectors to the keys and values that each block of the decoder will look at."""
    graph = Graph("encoder")
    width = model.inputs.weight_VD.size(1)
    x = graph.input("x_NKD", "float32", ["N", "K", width])
    mask = graph.input("mask_N11K", "float32", ["N", 1, 1, "K"])
    parts = Parts(graph, precision, graph.input("position_K", "int64", ["K"]))

    def look(attention: MultiHeadAttention, query: str, memory: KeyValues) -> str:
        return parts.attended(attention, query, memory, mask).mixed

    blocks = [cast(Block, block) for block in model.encoder.blocks]
    looks: list[tuple[Look, LookOut | None]] = [(partial(look, block.self_attention), None) for block in blocks]
    x = parts.positioned(model.inputs.positions, x, width)
    memory = parts.stack(model.encoder, x, looks)

    for layer, attention in enumerate(_cross_attentions(model)):
        # Not of all layers together: what comes of that is too large for a processor's caches.
        key, value = parts.key_values(attention, *parts.together([attention.key, attention.value], memory))
        graph.output(key, f"memory_key_NHKE.{layer}", "float32", ["N", *_heads(attention, "K", attention.key)])
        graph.output(value, f"memory_value_NHKU.{layer}", "float32", ["N", *_heads(attention, "K", attention.value)])
    return graph.bytes()


def step_graph(model: EncoderDecoder, precision: Precision, looking: Collection[Head]) -> bytes:
    """From the vectors of each sentence's last tokens to what the output chooses by.

    Keys and values of every token written are kept in slots. `place` tells for each head of each hypothesis where those
    of this step go: to which sentence, head and slot. They are put there in place if the cache that goes in and the one
    that comes out are the same memory; each hypothesis sees those slots that its mask lets it see.
    """
    graph = Graph("step")
    width = model.inputs.weight_VD.size(1)
    x = graph.input("x_NBD", "float32", ["N", "B", width])
    place = graph.input("place", "int64", ["N", "H", "B", 3])
    mask = graph.input("mask_N1BS", "float32", ["N", 1, "B", "S"])
    memory_mask = graph.input("memory_mask_N11K", "float32", ["N", 1, 1, "K"])
    # One position for all: it is added to, or turned into, every hypothesis alike.
    parts = Parts(graph, precision, graph.input("position_1", "int64", [1]))
    looked: list[str] = []

    def look(layer: int, attention: MultiHeadAttention, query: str, present: KeyValues) -> str:
        seen = []
        for name, part, new in zip(("key_NHSE", "value_NHSU"), (attention.key, attention.value), present, strict=True):
            shape = ["N", *_heads(attention, "S", part)]
            before = graph.input(f"{name}.{layer}", "float32", shape)
            after = graph.add("ScatterND", before, place, new)
            graph.output(after, f"{name}.{layer}.after", "float32", shape)
            seen.append(after)
        return parts.attended_one_by_one(attention, query, KeyValues(*seen), mask)

    def look_out(layer: int, attention: MultiHeadAttention, query: str) -> str:
        memory = KeyValues(
            graph.input(f"memory_key_NHKE.{layer}", "float32", ["N", *_heads(attention, "K", attention.key)]),
            graph.input(f"memory_value_NHKU.{layer}", "float32", ["N", *_heads(attention, "K", attention.value)]),
        )
        seen = parts.attended(attention, query, memory, memory_mask)
        heads = [head for at, head in looking if at == layer]
        if heads:
            looked.append(graph.add("Gather", seen.weight_NHWK, graph.constant(heads, "int64"), axis=1))
        return seen.mixed

    blocks = [cast(Block, block) for block in model.decoder.blocks]
    looks: list[tuple[Look, LookOut | None]] = [
        (partial(look, layer, block.self_attention), partial(look_out, layer, attention))
        for layer, (block, attention) in enumerate(zip(blocks, _cross_attentions(model), strict=True))
    ]
    x = parts.positioned(model.inputs.positions, x, width)
    y = parts.stack(model.decoder, x, looks)
    graph.output(y, "y_NBD", "float32", ["N", "B", width])
    together = graph.add("Concat", *looked, axis=1)
    mean = graph.add("ReduceMean", together, graph.constant([1], "int64"), keepdims=0)
    graph.output(mean, "looked_NBK", "float32", ["N", "B", "K"])
    return graph.bytes()


def output_graph(precision: Precision, vectors: Matrix, file: str, offset: int) -> bytes:
    """From the decoder's vectors to the log-probabilities of the vocabulary, whose own vectors the file has."""
    graph = Graph("output")
    y = graph.input("y_NBD", "float32", ["N", "B", vectors.numbers.shape[1]])
    numbers = graph.add("Transpose", graph.constant_elsewhere(vectors.numbers, file, offset), perm=[1, 0])
    logits = precision.multiply(graph, y, numbers, graph.constant(vectors.scale))
    log_probability = graph.add("LogSoftmax", logits, axis=-1)
    best, place = graph.add_several(2, "TopK", log_probability, graph.input("count_1", "int64", [1]), axis=-1)
    graph.output(log_probability, "log_probability_NBV", "float32", ["N", "B", "V"])
    graph.output(best, "best_NBC", "float32", ["N", "B", "C"])
    graph.output(place, "place_NBC", "int64", ["N", "B", "C"])
    return graph.bytes()


def shortlist_graph(
    precision: Precision, vectors: Matrix, file: str, offset: int, always: Array, *, given: Multiply, dtype: str
) -> bytes:
    """The same of some words only: those that always may come, and of each sentence its own, whose vectors are given.

    The many that all share are constants, which are put in order for products once; a sentence's own are few, and
    nobody else's are multiplied. They are never joined, which would be to copy the many: for the few, all that always
    may come are one more choice, and its share of the probability is what its words have to be divided by.
    """
    graph = Graph("shortlist")
    width = vectors.numbers.shape[1]
    y = graph.input("y_NBD", "float32", ["N", "B", width])
    every = graph.constant_elsewhere(vectors.numbers, file, offset)
    numbers = graph.add("Transpose", graph.add("Gather", every, graph.constant(always, "int64")), perm=[1, 0])
    logits_NBJ = precision.multiply(graph, y, numbers, graph.constant(vectors.scale[always]))
    always_NBJ = graph.add("LogSoftmax", logits_NBJ, axis=-1)
    # How far they were moved, the first as all others.
    sum_NB1 = graph.add("Sub", *(graph.slice(one, 0, 1) for one in (logits_NBJ, always_NBJ)))

    own_numbers = graph.input("numbers_NDO", dtype, ["N", width, "O"])
    own_logits = given(graph, y, own_numbers, graph.input("scale_N1O", "float32", ["N", 1, "O"]))
    masked = graph.add("Add", own_logits, graph.input("mask_N1O", "float32", ["N", 1, "O"]))
    shares = graph.add("LogSoftmax", graph.add("Concat", sum_NB1, masked, axis=-1), axis=-1)
    share_NB1, own_NBO = graph.slice(shares, 0, 1), graph.slice(shares, 1, None)

    count = graph.input("count_1", "int64", [1])
    few = graph.add("Min", count, graph.constant([len(always)], "int64"))
    best_always, place_always = graph.add_several(2, "TopK", always_NBJ, few, axis=-1)
    own_few = graph.add("Min", count, graph.add("Shape", own_NBO, start=2))
    best_own, place_own = graph.add_several(2, "TopK", own_NBO, own_few, axis=-1)
    behind = graph.add("Add", place_own, graph.constant([len(always)], "int64"))
    both = graph.add("Concat", graph.add("Add", best_always, share_NB1), best_own, axis=-1)
    best, which = graph.add_several(2, "TopK", both, count, axis=-1)
    place = graph.add("GatherElements", graph.add("Concat", place_always, behind, axis=-1), which, axis=-1)

    graph.output(always_NBJ, "always_NBJ", "float32", ["N", "B", len(always)])
    graph.output(share_NB1, "share_NB1", "float32", ["N", "B", 1])
    graph.output(own_NBO, "own_NBO", "float32", ["N", "B", "O"])
    graph.output(best, "best_NBC", "float32", ["N", "B", "C"])
    graph.output(place, "place_NBC", "int64", ["N", "B", "C"])
    return graph.bytes()


def sum_graph() -> bytes:
    """A product of 8-bit numbers as it comes: with the largest ones, it shows what a processor makes of their sum."""
    graph = Graph("sum")
    row = graph.input("row_1D", "uint8", [1, "D"])
    numbers = graph.input("numbers_DV", "int8", ["D", "V"])
    graph.output(graph.add("MatMulInteger", row, numbers), "sum_1V", "int32", [1, "V"])
    return graph.bytes()


def _cross_attentions(model: EncoderDecoder) -> list[MultiHeadAttention]:
    found = [cast(Block, block).cross_attention for block in model.decoder.blocks]
    return [attention for attention in found if attention is not None]


def _heads(attention: MultiHeadAttention, positions: str, part: nn.Linear) -> list[int | str]:
    """The shape of keys or values of one sentence."""
    return [attention.heads, positions, part.out_features // attention.heads]
