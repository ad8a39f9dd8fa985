"""What a run of a launch records: the types of its events, accesses, objects and problems."""
