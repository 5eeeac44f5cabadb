"""`python -m jobs` is `gistmill`."""

from jobs.run.interruption import interruptible

if __name__ == "__main__":  # not in processes that this one spawns
    interruptible()
    from jobs.cli import main

    main()
