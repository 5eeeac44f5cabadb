"""Weights & Biases. The only file that imports wandb.

Its package reads the key, the server and the mode from the environment: WANDB_API_KEY,
WANDB_BASE_URL, WANDB_MODE=offline."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from pipeline.trackers.tracker import Rows, TrackedRun, TrackerSettings

_START_SECONDS = 30.0


class WandbSettings(TrackerSettings):
    """Weights & Biases; conf/tracker/wandb.yaml explains the keys."""

    name: Literal["wandb"]
    project: str = Field(min_length=1)
    entity: str | None  # a team; null: your own

    package: ClassVar[str | None] = "wandb"

    def start(self, run: TrackedRun) -> "WandbTracker":
        import wandb

        own = wandb.Settings(silent=True, console="off", init_timeout=_START_SECONDS)
        if wandb.setup().settings.mode == "online" and not wandb.login(prompt=False, verify=False):
            raise wandb.UsageError("no API key; wandb login, or set WANDB_MODE=offline")
        made = wandb.init(
            project=self.project,
            entity=self.entity,
            name=run.name,
            id=run.run_id,
            resume="allow",
            config=dict(run.config),
            settings=own,
        )
        return WandbTracker(made)


class WandbTracker:
    """A run there."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def progress(self, figures: Mapping[str, float]) -> None:
        self._run.log(dict(figures))

    def end(self, headline: Rows, exit_code: int) -> None:
        import wandb

        if headline:
            columns = [*headline[0]]
            data = [[row[name] for name in columns] for row in headline]
            self._run.log({"headline": wandb.Table(columns=columns, data=data)})
        self._run.finish(exit_code=exit_code)
