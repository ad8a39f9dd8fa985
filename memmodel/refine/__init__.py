"""Models, one candidate at a time: the solver chooses, the model judges, the solver learns why one fails."""
