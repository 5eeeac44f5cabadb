"""What of a corpus is still to do, counted document by document; and documents kept as a sample.

The corpus is read once and never held. Documents are kept by length, so that whatever their
lengths are, some of each are there in the end.
"""

import math
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.config import RunConfig
from jobs.load import chosen
from pipeline.records import Question
from pipeline.steps import Committed, DocumentKey, Step, Unit, plan_document
from stages.corpora.loaded import Loaded
from stages.paginate import sections
from stages.retrieve import OraclePages
from stages.words import header_of, without_header

Kind = frozenset[str]
"""The memory steps, by id, that a document still has to do."""

_WIDTH = 1.25  # of a class of lengths: the longest of it, by the shortest
_KEPT_OF_CLASS = 2
SAMPLED = 12  # documents; a corpus of no more is sampled whole


@dataclass(frozen=True, slots=True)
class Todo:
    """What one document has to do: a memory step once, a question step so many times. A rating's
    times are the references that are rated against."""

    document_id: str
    num_words: int
    num_questions: int
    kind: Kind
    times: Mapping[str, int]  # by step id, those with something to do


@dataclass
class Counted:
    """The corpus. `done` are the units that stand already, by step."""

    num_documents: int = 0  # that can be read
    num_questions: int = 0
    num_words: int = 0
    todo: list[Todo] = field(default_factory=list)
    done: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    kept: dict[str, Loaded] = field(default_factory=dict)  # by document id
    distinct_share: float = 1.0  # of the words of sessions, each session counted once


class _Keeper:
    """Keeps the first few documents, and of every class of lengths those drawn by their id."""

    def __init__(self) -> None:
        self._first: list[Loaded] = []
        self._drawn: dict[tuple[Kind, int], list[tuple[int, str, Loaded]]] = defaultdict(list)

    def see(self, kind: Kind, loaded: Loaded) -> None:
        document = loaded.document
        if len(self._first) < SAMPLED:
            self._first.append(loaded)
        own = self._drawn[kind, length_class(document.num_words)]
        own.append((zlib.crc32(document.document_id.encode()), document.document_id, loaded))
        own.sort(key=lambda drawn: drawn[:2])
        del own[_KEPT_OF_CLASS:]

    def kept(self, num_todo: int) -> dict[str, Loaded]:
        drawn = [loaded for own in self._drawn.values() for _, _, loaded in own]
        found = self._first if num_todo <= SAMPLED else drawn
        return {loaded.document.document_id: loaded for loaded in found}


def length_class(num_words: int) -> int:
    return int(math.log(max(1, num_words)) / math.log(_WIDTH))


def count(config: RunConfig, steps: Sequence[Step], committed: Committed) -> Counted:
    """Read the corpus. Raises UsageError where it is of no use."""
    counted, keeper, sessions = Counted(), _Keeper(), _Sessions()
    planner = _Planner(config, steps, committed)
    for loaded in chosen(config):
        document = loaded.document
        if document.problem is not None or document.skipped:
            continue
        asked = [question for question in loaded.questions if question.problem is None]
        counted.num_documents += 1
        counted.num_questions += len(asked)
        counted.num_words += document.num_words
        todo, done = planner.todo(loaded, asked)
        for unit in done:
            counted.done[unit.step_id].append(unit.unit)
        if todo.times:
            counted.todo.append(todo)
            keeper.see(todo.kind, loaded)
            if config.corpus.page_breaks:
                sessions.see(document.text)
    counted.kept = keeper.kept(len(counted.todo))
    counted.distinct_share = sessions.distinct_share()
    return counted


class _Planner:
    """Says what a document has to do; asks the store's names only of steps that have any."""

    def __init__(self, config: RunConfig, steps: Sequence[Step], committed: Committed) -> None:
        self._config, self._committed = config, committed
        self._steps, self._needing = steps, needing_evidence(steps)
        self._standing = list(_with_upstream([s for s in steps if committed.units.get(s.id)]))

    def todo(self, loaded: Loaded, asked: Sequence[Question]) -> tuple[Todo, list[Unit]]:
        done: list[Unit] = []
        if self._standing:
            key = DocumentKey.of(loaded.document, loaded.questions)
            per_unit = self._config.questions_per_unit
            planned = plan_document(self._standing, key, self._committed, per_unit)
            done = [unit for unit in planned if unit.is_done]
        done_of: dict[str, set[str]] = defaultdict(set)
        for unit in done:
            done_of[unit.step_id] |= set(unit.inputs) or {""}
        times = {step.id: self._times(step, asked, done_of[step.id]) for step in self._steps}
        times = {step_id: n for step_id, n in times.items() if n}
        kind = frozenset(s.id for s in self._steps if not s.per_question and s.id in times)
        document = loaded.document
        return (
            Todo(document.document_id, document.num_words, len(asked), kind, times),
            done,
        )

    def _times(self, step: Step, asked: Sequence[Question], done: Collection[str]) -> int:
        if step.stage is None:
            return 0
        if not step.per_question:
            return int(not done)
        left = [question for question in asked if question.question_id not in done]
        return sum(weight(step, question, self._needing) for question in left)


def weight(step: Step, question: Question, needing: Collection[str]) -> int:
    """How many times a question counts in a step: a rating once for each of its references, and
    not at all where the step is one of those `needing` evidence and there is none."""
    if step.id in needing and not question.evidence:
        return 0
    if step.name != "rate":
        return 1
    return 0 if question.options else len(question.references)


def needing_evidence(steps: Sequence[Step]) -> set[str]:
    """The steps that skip questions without gold evidence: a look-up, and what follows from it."""
    found: set[str] = set()
    for step in steps:
        if isinstance(step.stage, OraclePages) or any(up.id in found for up in step.upstream):
            found.add(step.id)
    return found


def _with_upstream(standing: Sequence[Step]) -> Iterator[Step]:
    """The steps and all that names their units, upstream first, each once."""
    seen: set[str] = set()

    def walk(step: Step) -> Iterator[Step]:
        for upstream in step.upstream:
            yield from walk(upstream)
        if step.id not in seen:
            seen.add(step.id)
            yield step

    for step in standing:
        yield from walk(step)


class _Sessions:
    """The sessions of all histories: one that stands in several is gisted once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._total = self._distinct = 0

    def see(self, text: str) -> None:
        for start, end in sections(text):
            session = text[start:end]
            own = hash(without_header(session))
            self._total += len(session)
            if header_of(session) is None or own not in self._seen:
                self._distinct += len(session)
            self._seen.add(own)

    def distinct_share(self) -> float:
        return self._distinct / self._total if self._total else 1.0
