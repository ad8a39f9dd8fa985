"""One thing put for another: instructions, numbers in all like instructions, objects."""
