"""The progress of a run as one line of text, fitted to a width."""

from collections.abc import Callable, Mapping
from typing import Any

from rich.progress import ProgressColumn, Task
from rich.table import Column
from rich.text import Text

from jobs.output.cells import printable

_NO_LIMIT = 10**6
BAR_WIDTH = 20
_PERCENT_WIDTH = 4


class StateColumn(ProgressColumn):
    """The column beside phase, bar and percent. `width`: that of the terminal at this moment; a
    task's field `state` is `Progress.state`."""

    def __init__(self, width: Callable[[], int]) -> None:
        super().__init__(Column(no_wrap=True, overflow="ellipsis"))
        self._width = width

    def render(self, task: Task) -> Text:
        beside = len(task.description) + BAR_WIDTH + _PERCENT_WIDTH + 3  # spaces between them
        return Text(fitted_state(task.fields["state"], self._width() - beside))


def progress_line(state: Mapping[str, Any], width: int = _NO_LIMIT) -> str:
    """`Progress.state` in at most `width` characters, or as many as phase and percent take."""
    start = f"{state['phase']} {100 * state['share']:.0f}%: "
    return (start + fitted_state(state, width - len(start))).rstrip(": ")


def fitted_state(state: Mapping[str, Any], room: int) -> str:
    """The parts of a state that fit `room` characters, the most important first."""
    kept: list[str] = []
    for forms in _parts(state):
        for form in forms:
            if len(", ".join([*kept, form])) <= room:
                kept.append(form)
                break
    return printable(", ".join(kept))


def _parts(state: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The parts by importance, each with its shorter forms."""
    found: list[tuple[str, ...]] = []
    if state["ends_at"]:
        hours, minutes = divmod(round(state["seconds_left"] / 60), 60)
        found.append((f"ETA {state['ends_at'][11:]} (in {hours}:{minutes:02} h)",))
    if away := state.get("waiting_for"):
        found.append((f"waiting for {away}", "waiting for a server"))
    if refused := state.get("refused"):
        found.append((f"progress {refusal_text(refused)}", "progress not written"))
    if rows := document_text(state.get("inside")):
        found.append((rows,))
    return [
        *found,
        (f"{state['units']}/{state['planned_units']} units",),
        (f"{state['problems']} problems",),
        (f"{state['tokens_per_second']:.0f} tokens/s",),
        (f"{100 * state['cached_share']:.0f}% cached",),
        (f"{state['rows_per_second']:.4g} rows/s",),
    ]


def document_text(document: Mapping[str, Any] | None) -> str:
    """The progress of a document by `DocumentProgress.state`: `pages 37 of about 300`, or ""."""
    if not document or not document.get("about"):
        return ""
    return f"{document['table']} {document['done']} of about {document['about']}"


def refusal_text(refused: Mapping[str, Any]) -> str:
    """The refusals of storage by `Advisory.state`, as part of a line."""
    return f"could not be written for {refused['seconds']:.0f} s ({refused['error']})"
