"""Rows of the table: data movement (PTX ISA 9.7.9)."""
