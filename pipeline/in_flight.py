"""Who was in hand when a worker died: records of attempts, each withdrawn on orderly exit.

<run>/attempts/<launch>/<item>.<attempt>.json. What is left over tells of a death. A launch has its
own folder: a killed driver is nobody's fault.
"""

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from upath import UPath

from pipeline.errors import EngineError, StartError
from pipeline.place import AnyPath, place
from pipeline.settings import sha
from pipeline.store.shards import write_json

_DEATHS_ALONE = 2  # of a worker with one document in hand, until what it worked on is given up
_DEATHS_STARTING = 2


@dataclass(frozen=True)
class Deaths:
    """The deaths of workers that had an item in hand; `alone` counts, by unit, those with no other.

    A death between units is laid to "".
    """

    total: int
    alone: Counter[str]

    def give_up(self, unit: str) -> bool:
        """Whether the unit, or the item between its units, has had its deaths."""
        return max(self.alone[unit], self.alone[""]) >= _DEATHS_ALONE


class Attempts:
    """The records of one launch of a run."""

    def __init__(self, folder: AnyPath) -> None:
        self._folder = place(folder)

    def deaths(self, item: str) -> Deaths:
        """What former attempts at an item came to."""
        left = [json.loads(f.read_text()) for f in self._folder.glob(f"{_name(item)}.*.json")]
        return Deaths(len(left), Counter(record["unit"] for record in left if record["alone"]))

    @contextmanager
    def attempt(self, item: str, alone: bool) -> Iterator["Attempt"]:
        """On record within. The end of the process is no orderly exit, and neither is a dead
        engine's, which it follows; any other exception is."""
        file = self._folder / f"{_name(item)}.{uuid.uuid4().hex}.json"
        attempt = Attempt(file, item, alone)
        attempt.on("")
        try:
            yield attempt
        except EngineError:
            attempt.is_dead = True
            raise
        finally:
            if not attempt.is_dead:
                file.unlink(missing_ok=True)

    @contextmanager
    def start(self, worker: str) -> Iterator[None]:
        """The start of a worker's engine. Raises StartError where processes of it died so."""
        if len(list(self._folder.glob(f"start.{worker}.*.json"))) >= _DEATHS_STARTING:
            raise StartError(
                f"an engine's process died {_DEATHS_STARTING} times while it started (too little "
                "memory for the model, or for its cache?); nothing is lost, start again with less"
            )
        file = self._folder / f"start.{worker}.{uuid.uuid4().hex}.json"
        write_json(file, {})
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


@dataclass
class Attempt:
    """One attempt at an item."""

    file: UPath
    item: str
    alone: bool
    is_dead: bool = False

    def on(self, unit: str) -> None:
        """Put down what it works on from here."""
        write_json(self.file, {"item": self.item, "alone": self.alone, "unit": unit})

    @contextmanager
    def only(self, unit: str) -> Iterator[None]:
        """Within it, an item that is alone in hand works on `unit`, and dies of nothing else."""
        if not self.alone or self.is_dead:
            yield
            return
        self.on(unit)
        try:
            yield
        except EngineError:
            self.is_dead = True
            raise
        self.on("")


def _name(item: str) -> str:
    return sha(item, 16)
