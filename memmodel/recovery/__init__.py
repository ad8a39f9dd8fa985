"""What is said of a text with errors: all of them, each at its place."""
