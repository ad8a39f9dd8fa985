"""What an execution has between two accesses that does not order them."""
