"""`python -m jobs` is `gistmill`."""

from jobs.cli import main

main()
