"""What one launch says of others: other grids, other trip counts."""
