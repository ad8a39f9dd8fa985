"""cat text → statements, and back."""
