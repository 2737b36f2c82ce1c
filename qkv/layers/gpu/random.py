"""Dropout's coin inside a kernel: forward and backward toss the same one from the same seed, and none is stored."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def kept(seed, at, p):
    """Which numbers dropout keeps: a hash of the place and the seed, a fraction of the work of a random generator."""
    seed = tl.load(seed)
    bits = at.to(tl.uint32) * 0x9E3779B1 + seed.to(tl.uint32)
    bits = (bits ^ (bits >> 16)) * 0x85EBCA6B
    bits = (bits ^ (bits >> 13)) * 0xC2B2AE35 + (seed >> 32).to(tl.uint32)
    bits = (bits ^ (bits >> 16)) * 0x85EBCA6B
    return (bits >> 8).to(tl.float32) * (1 / 16777216) >= p
