"""gistmill as a library: execute runs, and read their results.

    import gistmill

    done = gistmill.run("experiment=demo", "warehouse=nights")
    print(done.exit_code, done.complaints)
    print(done.connect().sql("select method, count(*) as n from answers group by method"))

Commands and library take the same words, make the same checks and write the same files; a mistake
that ends a command with one line is an exception here.
"""

import importlib.metadata

from gistmill.import_guard import is_command, refuse_shadowed

refuse_shadowed()  # before anything of ours is imported

from jobs.run.interruption import interruptible

if is_command():
    interruptible()  # the imports take half a second

from jobs.api.library import RunResult, compare, config, reading_map, report, run, sent
from jobs.compare.compare import Comparison
from jobs.config.run_config import RunConfig
from jobs.report.report import Report
from pipeline.core.errors import CommandError, IncompleteError, UsageError
from pipeline.store import connect

__all__ = [
    "CommandError", "Comparison", "IncompleteError", "Report", "RunConfig", "RunResult",
    "UsageError", "__version__", "compare", "config", "connect", "reading_map", "report", "run",
    "sent",
]  # fmt: skip

__version__ = importlib.metadata.version("gistmill")
