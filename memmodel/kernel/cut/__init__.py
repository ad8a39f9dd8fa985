"""Findings cut down to litmus tests."""
