"""Findings written as litmus tests."""
