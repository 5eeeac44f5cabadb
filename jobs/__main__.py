"""`python -m jobs` is `gistmill`."""

from jobs.cli import main

if __name__ == "__main__":  # not in processes that this one spawns
    main()
