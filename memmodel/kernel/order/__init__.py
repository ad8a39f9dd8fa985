"""The order of a run under a model, its conflicts, and what is wrong with it."""
