"""Launches on whose schedule something depends: which schedules and which other executions are looked at."""
