"""What `qkv distill` trains by default: a deep encoder, which reads a sentence once, and a shallow decoder, which every
token of every hypothesis goes through.

Millions of multiplications a target token, where there are as many source tokens (the encoder; keys and values of its
memory; the decoder and the output for 4 hypotheses; attention's own sums, a hundredth of all, are left out):

                                        encoder   memory   decoder    output    all
    base, all 37,000 subwords              18.9      3.1      88.1      75.8    185.9
    base, 0.45 of them                     18.9      3.1      88.1      34.1    144.2
    student, 0.45 of them                  21.2      0.3       8.3      25.6     55.4
    student, the same, greedy              21.2      0.3       2.1       6.4     30.0

0.45 of the vocabulary are what a shortlist has. So 2.6 times less than base on equal terms at beam 4, 4.8 times where
the student is greedy, and 3.4 and 6.2 times less than base without a shortlist; docs/results.md has what a CPU makes of
it. Most of what is left is the encoder's, which multiplies whole sentences at once, and the output's.
"""

from __future__ import annotations

from qkv.config import Config
from qkv.recipes.variants import fast


def student() -> Config:
    """For `qkv distill`: 12 + 1 layers of modern's choices, width 384; a third of the work of base a token."""
    return fast().with_changes(
        model={"width": 384, "heads": 6, "hidden": 1024, "encoder_layers": 12, "decoder_layers": 1},
        # With weight decay it was never tried.
        training={"steps": 24_000, "save_every": 1500, "weight_decay": 0.0},
    )
