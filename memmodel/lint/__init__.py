"""What a test's author should hear about before any solving."""
