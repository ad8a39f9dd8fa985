"""What a run leaves open, and one way to choose it."""
