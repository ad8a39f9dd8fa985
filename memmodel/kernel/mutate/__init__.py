"""Kernels with one synchronization removed or weakened."""
