"""The flow of control and of registers in the text of a kernel."""
