"""`make demo`: runs the demo experiment by the real command, and prints what to try next."""

import subprocess
import sys
import time
from pathlib import Path

from jobs.output.print_tables import print_line

_BEFORE = """\
Reading three short texts with ten methods into the folder warehouse. Ray starts first, which
takes some seconds, and longer the first time.
"""
_AFTER = """
The table of methods above: CR is how much of the document was left unread, # LU the pages looked
up, rouge the answer against its references, recall the share of the evidence that was read. Look
next at what is behind a row:
  .venv/bin/gistmill trace meeting-02 method=readagent   one question, step by step
  .venv/bin/gistmill show tide_mill_handbook page=1      a page beside its short form
  .venv/bin/gistmill report by=question_type             the table by type of question
  .venv/bin/gistmill trace meeting-02 --prompts          with every model call, as it was sent
  .venv/bin/gistmill sql "select stage, reply from calls"   what came back
"""
_INSTALLED = Path(".venv/base")  # contains the seconds that the installation took


def main() -> None:
    """Exits with the run's code."""
    print_line(_BEFORE)
    sys.stdout.flush()
    started = time.monotonic()
    command = [sys.executable, "-m", "jobs", "run", "experiment=demo", "warehouse=warehouse"]
    code = subprocess.run(command).returncode
    seconds = time.monotonic() - started
    print_line(_AFTER if code == 0 else "")
    installed = _INSTALLED.read_text().strip() if _INSTALLED.is_file() else "0"
    print_line(f"\ninstall {installed} s, run {seconds:.0f} s")
    sys.exit(code)


if __name__ == "__main__":
    main()
