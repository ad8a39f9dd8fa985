"""Other executions of a launch: schedules, values that reads return, loops that wait."""
