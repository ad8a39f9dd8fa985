"""Polling loops that are waits: each ends in every execution, and observes the same there."""
