"""Which questions of a step are committed, by the hashes of their inputs."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from pipeline.work.steps import Step


class Inputs(Mapping[str, str]):
    """input_sha -> unit, over a table of both: a dictionary of a million takes ten times as much
    memory."""

    def __init__(self, rows: Any) -> None:
        ordered = rows.sort_by([(name, "ascending") for name in ("input_sha", "unit")])
        self._shas, self._units = (
            ordered[name].combine_chunks() for name in rows.column_names[::-1]
        )

    def __getitem__(self, input_sha: str) -> str:
        place = bisect_left(self._shas, input_sha, key=lambda own: own.as_py())
        if place == len(self._shas) or self._shas[place].as_py() != input_sha:
            raise KeyError(input_sha)
        return str(self._units[place].as_py())

    def __iter__(self) -> Iterator[str]:
        return iter(self._shas.unique().to_pylist())

    def __len__(self) -> int:
        return len(self._shas.unique())


class InputsByStep(Mapping[str, Mapping[str, str]]):
    """`Committed.inputs`, read for a step when they are first asked for: a plan needs them where a
    chunk of questions is not committed as it is."""

    def __init__(self, steps: Mapping[str, Step], read: Callable[[str], Mapping[str, str]]) -> None:
        self._steps, self._read = steps, cache(read)

    def __getitem__(self, step_id: str) -> Mapping[str, str]:
        return self._read(step_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)
