"""Rows of the table: wgmma (PTX ISA 9.7.15) and tcgen05 (9.7.16)."""
