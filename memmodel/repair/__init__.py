"""Changes of a test: what to add so that a bad outcome or finding is gone (`fix`), what may be dropped (`weaken`)."""
