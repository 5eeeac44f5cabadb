"""`python -m gistmill` is the command `gistmill`."""

from pipeline.core.errors import interruptible

interruptible()  # the imports take half a second

from jobs.cli import main

if __name__ == "__main__":
    main()
