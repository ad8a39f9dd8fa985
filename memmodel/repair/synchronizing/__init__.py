"""The cheapest synchronization of a program that has none: what is taken out, prices, the search, hand-overs."""
