"""Models, one candidate at a time: the solver chooses, the model judges, and the solver learns why a candidate fails."""
