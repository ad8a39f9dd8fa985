"""Two models on the same tests: where they differ, in which direction, and why."""
