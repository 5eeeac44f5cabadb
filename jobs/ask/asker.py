"""Asks files questions, each in a run of the warehouse: one file, or every file by itself, or all
files at once.

Many files are asked at once in two runs. The first makes the pages and gists of every file, which
stay: a file that is added costs itself alone. The second asks one document of the pages, out of all
files, that match the question best, by any method as it is: there is no second way to read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from jobs.ask.ask_words import AskWords
from jobs.ask.doing import Doing
from jobs.graph.read_run import run_of
from jobs.graph.resolved_run import ResolvedRun
from jobs.run.launch import INCOMPLETE, Look, Outcome
from jobs.run.launch import run as execute
from pipeline.asking.kept_engines import KeptEngines
from pipeline.core.errors import IncompleteError, UsageError
from pipeline.core.settings import sha
from pipeline.files.place import is_remote, write
from pipeline.store.runs.run_folder import RunFolder
from pipeline.worker.inline import InlineHost
from stages.corpora.own.ask_corpus import AskCorpus
from stages.gathered.gathered_pages import (
    Gathered,
    MemoryPage,
    gather,
    of_methods,
    read_pages,
)
from stages.gathered.passage import rarity
from stages.gathered.quoted import STREAMED, AskedAnswer, Quoting, read_answers

MOST_WORDS = 6000
_NO_MODEL = (
    "answered by engine={}, which is no language model; engine=vllm or engine=openai, with "
    "engine.model=..., asks one"
)


@dataclass(frozen=True)
class Asked:
    """A question that was asked. `memories_run`: the run that has the pages of the answers."""

    question: str
    run: str
    memories_run: str
    warehouse: str
    exit_code: int
    num_files: int
    results: Sequence[AskedAnswer]


@dataclass(frozen=True)
class _Memories:
    """The pages of all files, made by the run of that name. `weight`: of every term."""

    outcome: Outcome
    pages: Sequence[MemoryPage]
    weight: Mapping[str, float] = field(repr=False)


class Asker:
    """Asks the files of `words`. Use it in a `with` block, in which engines stay started.

    `most_words`: of the pages that a question to several files chooses from. `on_text`: is called
    with the text so far of an answer, where the engine makes it bit by bit.
    """

    def __init__(
        self,
        words: AskWords,
        doing: Doing,
        most_words: int = MOST_WORDS,
        on_text: Callable[[str], None] | None = None,
    ) -> None:
        self._words, self._doing, self._most_words = words, doing, most_words
        resolved = self._resolved("?")
        corpus = resolved.config.corpus
        assert isinstance(corpus, AskCorpus)
        corpus.check()
        self.files = corpus.named_files()
        self._name = corpus.path.resolve().name or "files"
        engine = resolved.config.engine
        self._notes = [] if engine.is_model else [_NO_MODEL.format(engine.title)]
        self._memories: _Memories | None = None
        self._host = InlineHost(KeptEngines(STREAMED, on_text))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._host.__exit__(*error)

    def ask(self, question: str, each: bool = False) -> Asked:
        """Ask all files at once, or `each` by itself. Raises as `run` does."""
        asked = self._resolved(question)
        if each or len(self.files) == 1:
            return self._asked_each(asked, question)
        return self._asked_at_once(asked, question)

    def memories(self) -> _Memories:
        """The pages of all files, made once. Raises IncompleteError where some are left to do."""
        if self._memories is None:
            values = self._words.asking("")
            own_values = {"name": f"memories-{self._name}", "methods": "", "max_problem_rate": 1.0}
            resolved = run_of({**values, **own_values})  # every bad file is a line already
            pages: list[MemoryPage] = []
            self._doing.follow(len(self.files), "gisting")
            outcome = self._execute(resolved, lambda views, _: pages.extend(read_pages(views)))
            if outcome.exit_code == INCOMPLETE:
                raise IncompleteError("; ".join(outcome.complaints))
            own = of_methods(pages, resolved.steps)
            self._memories = _Memories(outcome, own, rarity([page.text for page in own]))
        return self._memories

    def _asked_each(self, resolved: ResolvedRun, question: str) -> Asked:
        self._doing.follow(len(self.files), "reading and answering")
        rows, pages, outcome = self._answered(resolved)
        quoting = Quoting(question, self.files, rarity([page.text for page in pages]))
        return self._found(outcome, outcome.run, question, quoting.answers(rows, pages))

    def _asked_at_once(self, asked: ResolvedRun, question: str) -> Asked:
        memories = self.memories()
        if not memories.pages:
            raise UsageError(f"{self._name}: no page of it could be read; see run="
                             f"{memories.outcome.run}")  # fmt: skip
        self._doing.say("ranking pages", f": {len(memories.pages)}")
        chosen = gather(self._name, memories.pages, self.files, question, self._most_words)
        self._doing.follow(0, "answering")
        rows, pages, outcome = self._answered(self._of_gathered(chosen, asked, question))
        quoting = Quoting(question, self.files, memories.weight, chosen.pages)
        return self._found(outcome, memories.outcome.run, question, quoting.answers(rows, pages))

    def _of_gathered(self, chosen: Gathered, asked: ResolvedRun, question: str) -> ResolvedRun:
        """The run that asks a gathered document, which is kept in its folder."""
        tables = chosen.tables(question)
        name = f"ask-{sha([asked.settings_sha, *map(bytes.decode, tables.values())], 8)}"
        folder = RunFolder(asked.config.warehouse, name).path / "asked"
        for file, content in tables.items():
            write(folder / file, content)
        place = folder if is_remote(folder) else folder.absolute()  # read again from any folder
        return run_of({**self._words.reading_memory(str(place)), "run": name})

    def _answered(
        self, resolved: ResolvedRun
    ) -> tuple[list[dict[str, Any]], list[MemoryPage], Outcome]:
        """The answers and the pages of an executed run."""
        rows: list[dict[str, Any]] = []
        pages: list[MemoryPage] = []

        def look(views: Any, _: RunFolder) -> None:
            rows.extend(read_answers(views))
            pages.extend(read_pages(views))

        return rows, pages, self._execute(resolved, look)

    def _found(
        self, outcome: Outcome, memories_run: str, question: str, answers: Sequence[AskedAnswer]
    ) -> Asked:
        self._doing.is_done()
        while self._notes:  # once is enough
            self._doing.warn(self._notes.pop())
        return Asked(question, outcome.run, memories_run, self._warehouse, outcome.exit_code,
                     len(self.files), answers)  # fmt: skip

    def _execute(self, resolved: ResolvedRun, look: Look) -> Outcome:
        """The outcome of a run, its complaints printed."""
        outcome = execute(
            resolved, self._doing.warn, look=look, host=self._host, listener=self._doing
        )
        for complaint in outcome.complaints:
            self._doing.warn(complaint)
        return outcome

    def _resolved(self, question: str) -> ResolvedRun:
        """The run that asks every file. Raises UsageError, for one without a method, too."""
        resolved = run_of(self._words.asking(question))
        if not resolved.methods:
            methods = resolved.config.methods
            raise UsageError(f"ask: methods={methods} asks nothing; name a method")
        self._warehouse = resolved.config.warehouse
        return resolved
