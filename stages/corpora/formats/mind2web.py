"""Mind2Web (OSU-NLP-Group/Mind2Web): JSON lists of episodes, each a task on a website and the
actions that did it (ReadAgent appendix D).

Every action of an episode is a document, the page as it was then (`cleaned_html`), and a question:
what to do next. Its references are the elements that count as right (`pos_candidates`), each with
the operation, written as a reader is asked to write it; an action without one has a reference
without an element, which no reply can be, as its authors count it as failed. The evidence is the
elements' opening tags.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pipeline.core.rows import Document, Span
from stages.corpora.reading.asked import Asked, Value
from stages.corpora.reading.corpus import FileCorpus
from stages.corpora.reading.corpus_row import Row, rows_within
from stages.corpora.reading.ids import Ids
from stages.corpora.reading.loaded import Loaded, bad_document, document_or_bad
from stages.corpora.reading.row_checks import (
    BadInputError,
    json_object,
    json_text,
    label_of,
    list_of,
    merged,
    optional_text,
    text_of,
    texts_of,
)
from stages.text.web_actions import WebAction


class Mind2WebCorpus(FileCorpus):
    """The file of a split, or a folder of such files."""

    papers: ClassVar[tuple[str, ...]] = ("mind2web",)
    licences: ClassVar[Mapping[str, str]] = {"Mind2Web": "CC BY 4.0"}
    files: ClassVar[tuple[str, ...]] = ("*.json",)
    format: Literal["mind2web"]
    splits: ClassVar[tuple[str, ...]] = ("test_task", "test_website", "test_domain")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per action. An episode that cannot be read is one bad_input document.
        Raises UsageError where no row can be read."""
        ids = Ids()
        for row in self.rows():
            try:
                task, done, labels = _episode(row)
            except BadInputError as wrong:
                yield Loaded(bad_document(ids.of_place(row), row.detail(wrong)), ())
                continue
            for step, action in enumerate(rows_within(row, "actions")):
                about = {**labels, "step": step, "steps": len(done)}
                yield self._step(action, task, done[:step], about, ids)

    def _step(
        self, row: Row, task: str, done: list[str], labels: dict[str, Any], ids: Ids
    ) -> Loaded:
        found = document_id, _ = ids.of_row(row, "action_uid", labels, len(done))
        about = json_text(labels)

        def made(value: Value, document_id: str) -> Document:
            html = text_of(value, "cleaned_html")
            return self.document(document_id, html, labels["website"] or "", about)

        asked = Asked(
            question=lambda value: _question(task, done),
            references=_references,
            question_type=_operation_type,
            metadata=lambda value: about,
            evidence=_evidence,
        )
        document = document_or_bad(row, found, made)
        return Loaded(document, (asked.read(row, document_id, found),))


def _episode(row: Row) -> tuple[str, list[str], dict[str, str | None]]:
    """The task, its actions in words, and what else is known of it. Raises BadInputError."""
    if row.value is None:
        raise BadInputError(row.wrong)
    list_of(row.value, "actions")
    done = list(texts_of(row.value, "action_reprs"))
    if len(done) != len(row.value["actions"]):
        raise BadInputError(
            f"{len(row.value['actions'])} `actions`, {len(done)} `action_reprs`; fix them"
        )
    labels = {key: label_of(row.value, key) for key in ("annotation_id", "website", "domain")}
    if not labels["annotation_id"]:
        raise BadInputError("no `annotation_id`; add it")
    return text_of(row.value, "confirmed_task"), done, labels


def _question(task: str, done: list[str]) -> str:
    so_far = "\n".join(f"- {action}" for action in done) or "- none"
    return f"{task}\nDone so far:\n{so_far}\nWhat is the next action?"


def _operation(value: Value) -> tuple[str, str]:
    operation = json_object(value, "operation")
    return text_of(operation, "op"), optional_text(operation, "value") or ""


def _operation_type(value: Value) -> str | None:
    return _operation(value)[0]


def _elements(value: Value) -> list[str]:
    found: list[Any] = list_of(value, "pos_candidates")
    if not all(isinstance(one, dict) for one in found):
        raise BadInputError("`pos_candidates` is not a list of objects; fix it")
    return [name for one in found if (name := label_of(one, "backend_node_id"))]


def _references(value: Value) -> tuple[str, ...]:
    operation, text = _operation(value)
    names = _elements(value) or [""]
    return tuple(str(WebAction(name, operation, text)) for name in names)


def _evidence(value: Value) -> tuple[Span, ...]:
    html = text_of(value, "cleaned_html")
    tags = [
        re.search(rf"<[^<>]*\bbackend_node_id=[\"']?{re.escape(name)}[\"']?(?=[\s/>])[^<>]*>", html)
        for name in _elements(value)
    ]
    return merged(tag.span() for tag in tags if tag)
