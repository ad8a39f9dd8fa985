"""The search for repairs: programs tried and judged, changes one at a time, sets of changes."""
