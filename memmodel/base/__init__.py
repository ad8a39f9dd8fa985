"""The vocabulary that models are written in: what events are, and the base sets and relations over them."""
