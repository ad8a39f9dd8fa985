"""A family of launches, judged: the kernel with every value of some of its sizes."""
