"""The parts of a training step that a GPU does in one go: each is a twin of a plain part, and computes the same.

Kernels are written in Triton, which comes with torch where torch can use a GPU; nothing here is imported elsewhere.
"""
