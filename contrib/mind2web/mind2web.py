"""Mind2Web (OSU-NLP-Group/Mind2Web): JSON lists of episodes, each a task on a website and the
actions that did it (ReadAgent appendix D).

Every action of an episode is a document, the page at that moment (`cleaned_html`), and a question
for the next action. Its references are the elements that count as right (`pos_candidates`), each
with the operation, in the format that a reader is asked for. An action without such elements has a
reference without an element, which no reply can match, as its authors count it as failed. The
evidence is the elements' opening tags.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from gistmill.plugin import (
    BadInputError,
    Document,
    FileCorpus,
    Loaded,
    Question,
    Row,
    Span,
    text_of,
    texts_of,
)

from .web_metrics import WebAction

Value = dict[str, Any]


class Mind2WebCorpus(FileCorpus):
    """The file of a split, or a folder of such files."""

    papers: ClassVar[tuple[str, ...]] = ("mind2web",)
    licences: ClassVar[Mapping[str, str]] = {"Mind2Web": "CC BY 4.0"}
    files: ClassVar[tuple[str, ...]] = ("*.json",)
    format: Literal["mind2web"]
    splits: ClassVar[tuple[str, ...]] = ("test_task", "test_website", "test_domain")

    def load(self) -> Iterator[Loaded]:
        """Yield one Loaded per action. An episode or action that cannot be read is one bad_input
        document. Raises UsageError where no row can be read."""
        for row in self.rows():
            try:
                episode = _episode(row)
            except BadInputError as wrong:
                yield _bad(row, row.place, wrong)
                continue
            for step, action in enumerate(episode["actions"]):
                try:
                    yield self._step(episode, step, action)
                except BadInputError as wrong:
                    yield _bad(row, f"{row.place}:actions[{step}]", wrong)

    def _step(self, episode: Value, step: int, action: Any) -> Loaded:
        if not isinstance(action, dict):
            raise BadInputError("an action is no object; fix it")
        uid, html = text_of(action, "action_uid"), text_of(action, "cleaned_html")
        operation, names = _operation(action), _elements(action)
        kept = {key: episode.get(key) for key in ("annotation_id", "website", "domain")}
        steps = len(episode["actions"])
        about = json.dumps({**kept, "step": step, "steps": steps}, ensure_ascii=False)
        question = Question(
            document_id=uid,
            question_id=uid,
            question=_question(episode, step),
            references=tuple(str(WebAction(name, *operation)) for name in names or [""]),
            question_type=operation[0],
            metadata=about,
            evidence=_tags(html, names),
        )
        return Loaded(self.document(uid, html, kept["website"] or "", about), (question,))


def _bad(row: Row, place: str, wrong: BadInputError) -> Loaded:
    why = row.detail(wrong)
    return Loaded(Document(document_id=place, problem="bad_input", detail=why), ())


def _episode(row: Row) -> Value:
    """The row, checked for all that its actions need. Raises BadInputError."""
    if row.value is None:
        raise BadInputError(row.wrong)
    actions, said = row.value.get("actions"), texts_of(row.value, "action_reprs")
    if not isinstance(actions, list) or len(said) != len(actions):
        raise BadInputError("no list of `actions`, or no `action_reprs` for each; fix them")
    for key in ("annotation_id", "confirmed_task"):
        text_of(row.value, key)
    return row.value


def _question(episode: Value, step: int) -> str:
    done = "\n".join(f"- {said}" for said in episode["action_reprs"][:step]) or "- none"
    return f"{episode['confirmed_task']}\nDone so far:\n{done}\nWhat is the next action?"


def _operation(action: Value) -> tuple[str, str]:
    operation = action.get("operation")
    if not isinstance(operation, dict):
        raise BadInputError("`operation` is no object; fix it")
    return text_of(operation, "op"), operation.get("value") or ""


def _elements(action: Value) -> list[str]:
    found = action.get("pos_candidates")
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise BadInputError("`pos_candidates` is no list of objects; fix it")
    return [str(one["backend_node_id"]) for one in found if one.get("backend_node_id")]


def _tags(html: str, names: list[str]) -> tuple[Span, ...]:
    """The spans of the elements' opening tags, in order; spans that touch are joined."""
    tag = r"<[^<>]*\bbackend_node_id=[\"']?{}[\"']?(?=[\s/>])[^<>]*>"
    found = (re.search(tag.format(re.escape(name)), html) for name in names)
    made: list[Span] = []
    for start, end in sorted(one.span() for one in found if one):
        if made and start <= made[-1].end_char:
            made[-1] = Span(made[-1].start_char, max(end, made[-1].end_char))
        else:
            made.append(Span(start, end))
    return tuple(made)
