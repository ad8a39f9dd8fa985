"""A run's events, their order under a model, conflicts, and the verdict."""
