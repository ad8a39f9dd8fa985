"""The search that solves: one question in which the program is unknown, too."""
