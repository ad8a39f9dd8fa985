"""What the command `kernel` does with its options: one file for each kind of question."""
