"""Launches as a program made them: watched while it runs, and written as kernels and launch descriptions."""
