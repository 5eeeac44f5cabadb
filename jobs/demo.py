"""`make demo`: the demo experiment through the real command, and what to try next."""

import subprocess
import sys
import time
from pathlib import Path

from jobs.tables import print_line

WAREHOUSE = "warehouse"
_INSTALLED = Path(".venv/base")  # holds the seconds that the install took


def main() -> None:
    """Run the demo and print what to try next and how long it took. Exits with the run's code."""
    started = time.monotonic()
    command = ["run", "experiment=demo", f"warehouse={WAREHOUSE}"]
    code = subprocess.run([sys.executable, "-m", "jobs", *command]).returncode
    seconds = time.monotonic() - started
    print_line("\nTry next:")
    print_line("  .venv/bin/gistmill trace meeting-02 method=readagent")
    print_line("  .venv/bin/gistmill show tide_mill_handbook page=1")
    print_line("  .venv/bin/gistmill report by=question_type")
    print_line(
        '  .venv/bin/gistmill sql "select method, measure, avg(value) from measures group by all"'
    )
    installed = _INSTALLED.read_text().strip() if _INSTALLED.is_file() else "0"
    print_line(f"\ninstall {installed} s, run {seconds:.0f} s")
    sys.exit(code)


if __name__ == "__main__":
    main()
