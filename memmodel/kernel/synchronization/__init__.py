"""What every synchronization of a kernel does: the accesses that it orders, and whether it is needed."""
