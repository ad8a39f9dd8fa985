"""Rows of the table: parallel synchronization and communication (PTX ISA 9.7.13)."""
