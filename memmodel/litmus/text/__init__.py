"""A litmus test as text: what its words alone say, whether or not they make a test."""
