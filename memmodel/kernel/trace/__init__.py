"""What a run of a launch leaves behind: the types of its events, accesses, objects and problems."""
