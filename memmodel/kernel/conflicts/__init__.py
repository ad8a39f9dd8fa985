"""Which threads of a run do the same, and which of their accesses touch the same bytes."""
