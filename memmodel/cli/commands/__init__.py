"""Commands with a file of their own; the others are in `memmodel.cli.app`."""
