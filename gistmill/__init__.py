"""gistmill as a library: execute runs, and read what they have left.

    import gistmill

    done = gistmill.run("experiment=demo", "warehouse=nights")
    print(done.exit_code, done.complaints)
    print(done.connect().sql("select method, count(*) as n from answers group by method"))

Commands and library take the same words, make the same checks and write the same files; what ends a
command in one line is an exception here.
"""

import importlib.metadata

from jobs.compare import Comparison
from jobs.library import RunResult, compare, config, report, run
from jobs.report import Report
from jobs.run_config import RunConfig
from pipeline.errors import CommandError, IncompleteError, UsageError
from pipeline.store import connect

__all__ = [
    "CommandError", "Comparison", "IncompleteError", "Report", "RunConfig", "RunResult",
    "UsageError", "__version__", "compare", "config", "connect", "report", "run",
]  # fmt: skip

__version__ = importlib.metadata.version("gistmill")
