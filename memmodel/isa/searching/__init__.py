"""How a search for programs uses the rows of the instruction table."""
