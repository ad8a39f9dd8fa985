"""The search for the cheapest program that allows nothing more: forms of instructions, and what executions say."""
