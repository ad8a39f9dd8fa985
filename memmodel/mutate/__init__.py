"""One-rule edits of a cat model, and which tests tell each of them apart."""
