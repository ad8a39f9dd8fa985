"""The order of a run under a model, and what is wrong with it."""
