"""Threads run with numbers, and executions spelled out: what the enumeration engine and the referee share."""
