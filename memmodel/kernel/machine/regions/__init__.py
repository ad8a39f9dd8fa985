"""Which bytes of a launch the regions of its steps are."""
