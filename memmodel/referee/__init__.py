"""The plain evaluator that judges every witness, whichever engine found it."""
