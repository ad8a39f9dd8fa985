"""Asynchronous instructions of a kernel: bulk and tensor copies, wgmma, tcgen05, launch control."""
