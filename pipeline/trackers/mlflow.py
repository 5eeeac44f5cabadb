"""MLflow. The only file that imports mlflow.

Its package reads the server's key from the environment (MLFLOW_TRACKING_TOKEN), and its address
from MLFLOW_TRACKING_URI where `tracker.uri` is not set."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from pipeline.trackers.tracker import Rows, TrackedRun, TrackerSettings

_TAG = "gistmill.run_id"
_PARAMS_AT_ONCE, _PARAM_CHARS = 100, 500  # of a request, of a value


class MlflowSettings(TrackerSettings):
    """MLflow; conf/tracker/mlflow.yaml explains the keys."""

    name: Literal["mlflow"]
    uri: str | None  # null: MLFLOW_TRACKING_URI, or as the package stores runs
    experiment: str = Field(min_length=1)

    package: ClassVar[str | None] = "mlflow"

    def start(self, run: TrackedRun) -> "MlflowTracker":
        from mlflow import MlflowClient

        client = MlflowClient(self.uri)
        found = client.get_experiment_by_name(self.experiment)
        place = found.experiment_id if found else client.create_experiment(self.experiment)
        earlier = client.search_runs([place], f"tags.`{_TAG}` = '{run.run_id}'", max_results=1)
        if earlier:
            return MlflowTracker(client, earlier[0].info.run_id)
        made = client.create_run(place, run_name=run.name, tags={_TAG: run.run_id})
        tracker = MlflowTracker(client, made.info.run_id)
        tracker.configured(run.config)
        return tracker


class MlflowTracker:
    """A run there, of the id that MLflow gave it."""

    def __init__(self, client: Any, run_id: str) -> None:
        self._client, self._run_id = client, run_id

    def configured(self, config: Mapping[str, Any]) -> None:
        """Keep the config: whole as a file, and its values as parameters, which cannot change."""
        from mlflow.entities import Param

        self._client.log_dict(self._run_id, dict(config), "config.json")
        params = [Param(key, str(value)[:_PARAM_CHARS]) for key, value in _values(config)]
        for start in range(0, len(params), _PARAMS_AT_ONCE):
            self._client.log_batch(self._run_id, params=params[start : start + _PARAMS_AT_ONCE])

    def progress(self, figures: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(key, value, now, now // 1000) for key, value in figures.items()]
        self._client.log_batch(self._run_id, metrics=metrics)

    def end(self, headline: Rows, exit_code: int) -> None:
        if headline:
            columns = [*headline[0]]
            data = [[row[name] for name in columns] for row in headline]
            self._client.log_dict(self._run_id, {"columns": columns, "data": data}, "headline.json")
        self._client.set_terminated(self._run_id, "FAILED" if exit_code else "FINISHED")


def _values(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a config by their dotted keys."""
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _values(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value
