"""PTX as text: the vocabulary, operands, and the lexer that litmus tests and compiled modules share."""
