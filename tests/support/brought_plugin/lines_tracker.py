"""A tracker that writes what it is given to a file; LINES_FAIL_AT=end has it fail then."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pipeline.trackers.tracker import Rows, TrackedRun, TrackerSettings


class AwayError(Exception):
    """One that only the plugin knows."""


class Lines:
    def __init__(self, settings: "LinesSettings") -> None:
        self.settings = settings

    def progress(self, figures: Mapping[str, float]) -> None:
        self.settings.write("progress", **figures)

    def end(self, headline: Rows, exit_code: int) -> None:
        self.settings.write("end", headline=headline, exit_code=exit_code)


class LinesSettings(TrackerSettings):
    """Writes a line for each call to a file. For tests of plugins."""

    name: Literal["lines"]
    file: str

    def start(self, run: TrackedRun) -> Lines:
        self.write("start", run=run.name, run_id=run.run_id, config=run.config)
        return Lines(self)

    def write(self, what: str, **about: Any) -> None:
        if os.environ.get("LINES_FAIL_AT") == what:
            raise AwayError("its server\nis away")
        with Path(self.file).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, **about}) + "\n")
