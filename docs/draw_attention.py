"""Draws docs/attention.png: where each word of a translation looked in its source.

make demo
.venv/bin/python docs/draw_attention.py runs/demo "I can't lend this book to you."
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import torch

from qkv import Translator
from qkv.data.batch import one_sentence_a_row
from qkv.engines.load import load_run
from qkv.layers.attention import recording


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("sentence", metavar="SENTENCE", help="what is translated")
    options = parser.parse_args()
    source = options.sentence
    loaded = load_run(options.run, "cpu")
    model, tokenizer, translator = loaded.model, loaded.tokenizer, Translator.of(*loaded)
    source_ids = [*tokenizer.encode(source), tokenizer.end]
    target_ids = [tokenizer.begin, *tokenizer.encode(translator.translate([source])[0].text)]
    with torch.inference_mode(), recording(model) as recordings:
        model(one_sentence_a_row([source_ids], tokenizer.padding), one_sentence_a_row([target_ids], tokenizer.padding))
    # Position n of the decoder looks while it writes token n + 1.
    written = [*target_ids[1:], tokenizer.end]
    cross = [one.weight_RHWK for name, one in recordings.items() if name.endswith("cross_attention")]
    weight = torch.stack([layer[0] for layer in cross if layer is not None])
    layers, heads = weight.shape[:2]
    figure, axes = plt.subplots(layers, heads, figsize=(3.1 * heads, 2.9 * layers), layout="constrained")
    for layer in range(layers):
        for head in range(heads):
            axis = axes[layer, head]
            axis.imshow(weight[layer, head], cmap="Blues", vmin=0, vmax=1)
            axis.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=9)
            axis.set_xticks(range(len(source_ids)), map(tokenizer.piece, source_ids), rotation=90, fontsize=8)
            axis.set_yticks(range(len(written)), map(tokenizer.piece, written), fontsize=8)
    figure.savefig(Path(__file__).parent / "attention.png", dpi=90)


if __name__ == "__main__":
    main()
