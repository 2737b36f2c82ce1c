"""The parts of a step of training or search that a GPU does in one go: each is a plain part's twin, and computes the
same.

Kernels are written in Triton, which comes with torch where torch can use a GPU; nothing here is imported elsewhere.
"""
