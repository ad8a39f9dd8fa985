"""Instructions that threads execute together."""
