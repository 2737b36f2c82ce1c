"""Attention rollout (Abnar and Zuidema, 2020): how much of each input reaches each position through all the layers.

A layer passes on half of what a position was and half of what it looked at, the mean of its heads.
"""

from __future__ import annotations

import numpy as np

from qkv.search.engine import Floats


def rollout(weight_LHWK: Floats) -> Floats:
    """Through layers in which positions look at one another: for each position, its shares of all that went in."""
    share_WK: Floats = np.eye(weight_LHWK.shape[3], dtype=np.float32)
    for weight_HWK in weight_LHWK:
        share_WK = _half_of_both(share_WK, weight_HWK.mean(axis=0) @ share_WK)
    return share_WK


def rollout_across(encoder_LHWK: Floats, decoder_LHWK: Floats, cross_LHWK: Floats) -> tuple[Floats, Floats]:
    """Through the decoder as well: for each position of the target, its shares of the source and of what was read.

    All shares of a position sum to one.
    """
    of_source: Floats = np.zeros(cross_LHWK.shape[2:], np.float32)
    of_read: Floats = np.eye(decoder_LHWK.shape[3], dtype=np.float32)
    for decoder_HWK, cross_HWK in zip(decoder_LHWK, cross_LHWK, strict=True):
        mean_WK = decoder_HWK.mean(axis=0)
        of_source = _half_of_both(of_source, mean_WK @ of_source)
        of_read = _half_of_both(of_read, mean_WK @ of_read)
        of_source = _half_of_both(of_source, cross_HWK.mean(axis=0))
        of_read = _half_of_both(of_read, np.zeros(of_read.shape, np.float32))
    return of_source @ rollout(encoder_LHWK), of_read


def _half_of_both(one: Floats, other: Floats) -> Floats:
    both: Floats = (one + other) * np.float32(0.5)
    return both
