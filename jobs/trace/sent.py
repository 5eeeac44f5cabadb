"""The exact messages of every call of a run, rendered again.

A unit's stage is executed again on the stored rows, with the stored replies in place of the engine,
and each request is recognised by its hash in the row of the call. So the messages shown are those
that were sent, or the call states why they cannot be shown. Needs no model and no GPU. The messages
are those given to the engine: a server or tokenizer puts its chat template around them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from jobs.trace.recorded_steps import RecordedSteps
from jobs.trace.rerendering import Attempts, DocumentCalls, Rendered
from pipeline.core.errors import UsageError
from pipeline.core.plugins import load_plugins, plugin_folders
from pipeline.core.settings import CONF
from pipeline.files.place import AnyPath, as_path
from pipeline.store import Shards
from pipeline.store.runs.planned_units import Planned
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connect import run_name
from stages.builtin import load_builtin

load_builtin()


@dataclass(frozen=True)
class SentCall:
    """One model call and the messages sent for it; `messages` and `settings` are None if it cannot
    be rendered again, and `why_not` is the reason, in one sentence."""

    call: Mapping[str, Any]  # the row of `calls`, with all its columns
    messages: tuple[Mapping[str, str], ...] | None  # role, content: exactly what was sent
    settings: Mapping[str, Any] | None  # temperature, seed, max_reply_tokens, constraint
    why_not: str | None


class Sent:
    """The calls of one run, opened once and queried for many questions.

    Query the questions of one document after another: its rows and rendered units are kept until
    another document's are asked for. Raises UsageError if there is no such warehouse or run.
    """

    def __init__(
        self, warehouse: AnyPath, run: str | None = None, plugins: str | None = None
    ) -> None:
        """Open a run. `plugins`: folders whose stages the run used, as in `plugins=A,B`. They are
        not taken from the run's config: reading a warehouse must not execute code that it names."""
        folder = RunFolder(warehouse, run_name(warehouse, run))
        conf_folders = [*load_plugins(plugin_folders(plugins)), CONF]
        config = (folder.config() or {}).get("config")
        self._config = config if isinstance(config, Mapping) else {}
        self._steps = RecordedSteps(folder.path, conf_folders, _family_name(self._config))
        self._planned = Planned(folder.path)
        self._shards = Shards(as_path(warehouse))
        self._attempts = Attempts(self._shards)
        self._document: DocumentCalls | None = None

    def of_question(self, question_id: str) -> list[SentCall]:
        """The calls of all methods and raters for a question, in the order of the steps.

        Raises UsageError if the run has no such question.
        """
        document_id = self._planned.document_of(question_id)
        if document_id is None:
            raise self._unknown("question", question_id)
        found = self._of(document_id)
        units = [unit for unit in found.units if question_id in unit.inputs]
        calls = (one for unit in units for one in found.of(unit))
        return [_sent(one) for one in calls if one.call["question_id"] == question_id]

    def of_document(self, document_id: str) -> list[SentCall]:
        """The calls that made a document's memories, in the order of the steps.

        Raises UsageError if the run has no such document.
        """
        if not self._planned.has_document(document_id):
            raise self._unknown("document", document_id)
        found = self._of(document_id)
        return [_sent(one) for unit in found.units if not unit.inputs for one in found.of(unit)]

    def _unknown(self, what: str, name: str) -> UsageError:
        near = self._planned.hint(f"{what}_id", name)
        return UsageError(f"{name}: no such {what} in the run; {near}")

    def _of(self, document_id: str) -> DocumentCalls:
        if self._document is None or self._document.document_id != document_id:
            units = self._planned.units_of(document_id)
            self._document = DocumentCalls(
                units, self._shards, self._attempts, self._steps, self._config
            )
        return self._document


def _sent(found: Rendered) -> SentCall:
    request = found.request
    if request is None:
        return SentCall(found.call, None, None, found.why_not)
    settings = {
        "temperature": request.temperature,
        "seed": request.seed,
        "max_reply_tokens": request.max_reply_tokens,
        "constraint": asdict(request.constraint) if request.constraint else None,
    }
    messages = tuple({"role": m["role"], "content": m["content"]} for m in request.messages)
    return SentCall(found.call, messages, settings, None)


def _family_name(config: Mapping[str, Any]) -> str | None:
    """The prompt family that a run's config names."""
    corpus = config.get("corpus")
    name = config.get("family") or (corpus.get("family") if isinstance(corpus, Mapping) else None)
    return str(name) if name else None
