"""The `gistmill` command: one function per verb; the entry points of jobs on clusters. Overrides
are `key=value` words.

Exit codes: 0 complete, 1 crash or failed accounting, 2 bad usage or config, 3 finished with more
problems than allowed, 4 incomplete (the same command resumes).
"""

import gc
import signal
import sys
from io import TextIOWrapper
from typing import Any

import typer

from jobs.cli import execute_verbs, export_verbs, keep_verbs, read_verbs  # noqa: F401
from jobs.cli.app import app, warn
from jobs.config.options import WORDS
from jobs.output.print_tables import warn_in_lines
from pipeline.core.errors import (
    INTERRUPTED,
    CommandError,
    IncompleteError,
    UsageError,
    end_at_signal,
)
from pipeline.files.storage import filesystem_errors, refusal_error

_EXECUTING = {"run", "ask", "score", "retry", "rate", "plan"}
if sys.argv[1:] and sys.argv[1] in _EXECUTING and "--help" not in sys.argv:
    # Now, as Ctrl-C still ends the process: what it raises in an import may become another error.
    import jobs.api.library  # noqa: F401

# ClickException of the click that Typer uses: newer versions of Typer bundle a copy of their own.
_CLICK_ERROR: Any = typer.BadParameter.__mro__[2]

_INTERRUPTED = 130  # Typer's exit code for Ctrl-C
# A plan makes millions of objects without cycles; by default Python looks for cycles every 700.
_OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    if signal.getsignal(signal.SIGINT) is end_at_signal:  # verbs do more than end
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if isinstance(sys.stdout, TextIOWrapper):  # its encoding may lack a character
        sys.stdout.reconfigure(errors="replace")
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    words = sys.argv[1:]
    try:
        with warn_in_lines(warn):
            code = app(words or ["--help"], prog_name="gistmill", standalone_mode=False)
        code = code if words else 2
        if code == _INTERRUPTED:
            code = _complain(IncompleteError(INTERRUPTED))
    except _CLICK_ERROR as error:
        path = error.ctx.command_path if getattr(error, "ctx", None) else "gistmill"
        option = getattr(error, "option_name", "")  # where the mistake is an unknown option
        key = option.lstrip("-").replace("-", "_")
        line = f"{error.format_message().rstrip('.')}; see {path} --help"
        if key in WORDS:
            line = f"{option}: write {key}=VALUE, after the verb and its arguments"
        code = _complain(UsageError(line))
    except CommandError as error:
        code = _complain(error)
    except filesystem_errors() as error:
        code = _complain(refusal_error(getattr(error, "filename", None) or "storage", error))
    sys.stdout.flush()
    sys.exit(code or 0)


def _complain(error: CommandError) -> int:
    warn(f"gistmill: {' '.join(str(error).split())}")
    return error.exit_code
