"""The value of cat expressions over an algebra: rows of bits, packed integers, sets of worlds, formulas."""
