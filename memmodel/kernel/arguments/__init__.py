"""The arguments of a call, as the program that calls a kernel has them, made into the parameters of a launch."""
