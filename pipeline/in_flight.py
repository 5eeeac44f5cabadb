"""In-flight markers: one file per attempt at a document, deleted when the attempt ends.

<run>/in_flight/<launch>/<item>.<attempt>.json. A marker left behind means that its worker crashed.
Every launch of the driver has its own folder, so that a killed driver is not counted as a crash.
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

_MAX_CRASHES_ALONE = 2  # with a single document in flight, before its unit is given up
_MAX_CRASHES_STARTING = 2


@dataclass(frozen=True)
class Crashes:
    """Crashes of workers that had an item in flight.

    `alone` counts those of workers with nothing else in flight, by unit; "" stands for a crash
    between two units.
    """

    total: int
    alone: Counter[str]

    def give_up(self, unit: str) -> bool:
        """Whether workers crashed too often on the unit, or between units, of the item alone."""
        return max(self.alone[unit], self.alone[""]) >= _MAX_CRASHES_ALONE


class InFlightMarkers:
    """The markers of one launch of a run."""

    def __init__(self, folder: AnyPath) -> None:
        self._folder = place(folder)

    def crashes(self, item: str) -> Crashes:
        """The crashes of earlier attempts at an item."""
        left = [json.loads(f.read_text()) for f in self._folder.glob(f"{_name(item)}.*.json")]
        return Crashes(len(left), Counter(marker["unit"] for marker in left if marker["alone"]))

    @contextmanager
    def attempt(self, item: str, alone: bool) -> Iterator["InFlightMarker"]:
        """Keep a marker of the item inside the context. It stays if the process dies or after an
        EngineError, which ends the process; otherwise it is deleted."""
        file = self._folder / f"{_name(item)}.{uuid.uuid4().hex}.json"
        marker = InFlightMarker(file, item, alone)
        marker.write("")
        try:
            yield marker
        except EngineError:
            marker.is_left = True
            raise
        finally:
            if not marker.is_left:
                file.unlink(missing_ok=True)

    @contextmanager
    def start(self, worker: str) -> Iterator[None]:
        """Keep a marker while a worker's engine starts. Raises StartError where its processes
        crashed too often while they started."""
        if len(list(self._folder.glob(f"start.{worker}.*.json"))) >= _MAX_CRASHES_STARTING:
            raise StartError(
                f"an engine's process died {_MAX_CRASHES_STARTING} times while it started (too "
                "little memory for the model, or for its cache?); lower what it needs, then run "
                "the same command to resume"
            )
        file = self._folder / f"start.{worker}.{uuid.uuid4().hex}.json"
        write_json(file, {})
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


@dataclass
class InFlightMarker:
    """The marker of one attempt at an item."""

    file: UPath
    item: str
    alone: bool  # whether the worker has nothing else in flight
    is_left: bool = False

    def write(self, unit: str) -> None:
        """Record the unit being executed; "" between units."""
        write_json(self.file, {"item": self.item, "alone": self.alone, "unit": unit})

    @contextmanager
    def unit(self, unit: str) -> Iterator[None]:
        """Record `unit` inside the context, where the item is alone: crashes are counted for it."""
        if not self.alone or self.is_left:
            yield
            return
        self.write(unit)
        try:
            yield
        except EngineError:
            self.is_left = True
            raise
        self.write("")


def _name(item: str) -> str:
    return sha(item, 16)
