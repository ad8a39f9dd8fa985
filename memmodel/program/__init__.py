"""A lowered test: addresses, expressions, steps, and what they say of registers and bytes."""
