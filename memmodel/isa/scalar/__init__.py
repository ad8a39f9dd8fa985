"""Rows of the table: integer arithmetic, moves and control flow (PTX ISA 9.7.1 to 9.7.12)."""
