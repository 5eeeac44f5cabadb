"""The interface of trackers, and their settings, by which a plugin's tracker is found as ours
are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, Protocol, get_args

from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry
from pipeline.core.settings import Settings

Rows = Sequence[Mapping[str, str]]
TRACKERS: "Registry[type[TrackerSettings]]" = Registry("is the tracker {!r}", "trackers")


@dataclass(frozen=True)
class TrackedRun:
    """A run as a tracker is given it. `run_id` is the same when the command goes on with it, and
    no other run's; `config` has all settings and no secrets."""

    name: str
    run_id: str
    config: Mapping[str, Any]


class Tracker(Protocol):
    """Is called in a thread of its own, by one call at a time. What it raises ends its calls, with
    a warning, and not the run."""

    def progress(self, figures: Mapping[str, float]) -> None:
        """Keep how far the run is: the units and calls done so far, and others by name."""
        ...

    def end(self, headline: Rows, exit_code: int) -> None:
        """Keep the run's final table, one row per method; empty if the run has none. Nothing
        follows."""
        ...


class TrackerSettings(Settings):
    """The `tracker` section. A tracker is found by the name that its class declares
    (`name: Literal["..."]`) once its module is imported."""

    name: str

    package: ClassVar[str | None] = None  # that it needs, which the extra of its name installs

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        for name in get_args(cls.model_fields["name"].annotation):
            TRACKERS.add(name, cls)

    def refuse_unusable(self) -> None:
        """Raise UsageError if the tracker's package is not installed."""
        if self.package and find_spec(self.package) is None:
            raise UsageError(
                f"tracker={self.name}: {self.package} is not installed; pip install "
                f"'gistmill[{self.name}]'"
            )

    def start(self, run: TrackedRun) -> Tracker | None:
        """Begin to track a run, or go on with it; None: nothing is kept."""
        raise NotImplementedError


class NoTracker(TrackerSettings):
    """Nothing is sent anywhere."""

    name: Literal["none"]

    def start(self, run: TrackedRun) -> None:
        return None
