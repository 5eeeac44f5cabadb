"""gistmill as a library: execute runs, and read their results.

    import gistmill

    done = gistmill.run("experiment=demo", "warehouse=nights")
    print(done.exit_code, done.complaints)
    print(done.connect().sql("select method, count(*) as n from answers group by method"))

What executes runs is imported when one of its names is used: plugins and workers do without it.
"""

import importlib.metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

for _name in ("pipeline", "stages", "jobs"):  # names that a user's own project may have, too
    _spec, _ours = find_spec(_name), Path(__file__).resolve().parents[1] / _name / "__init__.py"
    if _spec and _spec.origin and Path(_spec.origin).resolve() != _ours:
        raise ImportError(
            f"{_spec.origin} hides gistmill's own package {_name!r}; rename it, or start Python "
            "from another folder and without it in PYTHONPATH"
        )

from pipeline.core.errors import CommandError, IncompleteError, UsageError

if TYPE_CHECKING:
    from jobs.api.library import RunResult, compare, config, reading_map, report, run, sent
    from jobs.compare.compare import Comparison
    from jobs.config.run_config import RunConfig
    from jobs.report.report import Report
    from pipeline.store import connect

__all__ = [
    "CommandError", "Comparison", "IncompleteError", "Report", "RunConfig", "RunResult",
    "UsageError", "__version__", "compare", "config", "connect", "reading_map", "report", "run",
    "sent",
]  # fmt: skip

__version__ = importlib.metadata.version("gistmill")


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'gistmill' has no attribute {name!r}")
        from jobs.api import library

        return getattr(library, name)
