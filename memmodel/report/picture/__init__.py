"""Executions as pictures: what to show of one, its layout, SVG and dot."""
