"""Compiled modules: PTX text to `PtxModule`."""
