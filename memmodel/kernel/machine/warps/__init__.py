"""Warps of a run: as the kernel starts, and instruction by instruction."""
