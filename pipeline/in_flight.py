"""In-flight markers: one file per attempt at a document, deleted when the attempt ends.

<run>/in_flight/<launch>/<item>.<attempt>.json. A marker that is left behind means that its worker
crashed. A launch has its own folder: a killed driver is no document's fault.
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

_MAX_CRASHES_ALONE = 2  # of workers with one document in flight, before its unit is given up
_MAX_CRASHES_STARTING = 2


@dataclass(frozen=True)
class Crashes:
    """The crashes of workers that had an item in flight; `alone` counts, by unit, those of workers
    that had nothing else. A crash between two units is counted under ""."""

    total: int
    alone: Counter[str]

    def give_up(self, unit: str) -> bool:
        """Whether the unit, or the item between its units, has crashed workers too often."""
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
        """Keep a marker of the item inside the context. It stays when the process ends, and after
        an EngineError, which ends the process; any other exception deletes it."""
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
        """Keep a marker while a worker's engine starts. Raises StartError where too many of its
        processes crashed while they started."""
        if len(list(self._folder.glob(f"start.{worker}.*.json"))) >= _MAX_CRASHES_STARTING:
            raise StartError(
                f"an engine's process died {_MAX_CRASHES_STARTING} times while it started (too "
                "little memory for the model, or for its cache?); nothing is lost, start again "
                "with less"
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
