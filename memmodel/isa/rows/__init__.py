"""What one row of the instruction table says, and the words in which it says it.

A new instruction is one row, one lowering function, one test; `document` writes its line in docs/instructions.md.
"""
