"""`python -m memmodel` is the program `memmodel`."""

from memmodel.cli import main

if __name__ == "__main__":
    main()
