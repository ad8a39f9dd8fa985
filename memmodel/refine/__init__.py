"""Models, one candidate at a time: the solver chooses an execution, the model judges it, the solver learns why it fails."""
