"""`python -m memmodel` is the program `memmodel`."""

from memmodel.cli import program

if __name__ == "__main__":
    program()
