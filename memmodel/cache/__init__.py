"""What was judged before: verdicts on disk, found again by the content of everything that they depend on."""
