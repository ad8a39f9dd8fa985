"""One HTML page about many tests: what it says of each, the marked source, the page with its style and script."""
