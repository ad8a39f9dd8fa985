"""What a repair puts in between: where, what, and barriers at which two threads meet."""
