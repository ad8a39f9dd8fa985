"""Values of registers: numbers, lanes, symbolic terms."""
