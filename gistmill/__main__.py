"""`python -m gistmill` is the command `gistmill`."""

from jobs.cli import main

if __name__ == "__main__":
    main()
