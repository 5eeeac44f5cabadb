"""`python -m gistmill` is the command `gistmill`."""

import signal

from pipeline.core.errors import end_at_signal

signal.signal(signal.SIGTERM, end_at_signal)  # now, as the imports take half a second

from jobs.cli import main

if __name__ == "__main__":
    main()
