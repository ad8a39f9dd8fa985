"""Compiled kernels: PTX as compilers write it, run with one launch, its order judged by a model."""
