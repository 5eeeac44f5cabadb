"""`gistmill ask`: asks files a question, and prints the answer, and the passages that it rests on.

Many files are asked at once in two runs: the first makes the pages and gists of every file, the
second asks one document made of the pages, from all files, that match the question best.
"""

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jobs.config.options import NOT_OF_ASK
from jobs.config.run_config import composed_values
from jobs.graph.resolved_run import ResolvedRun, run_of
from jobs.output.print_tables import counted, print_json, print_line
from jobs.output.terminal import wrapped
from jobs.run.launch import INCOMPLETE, Outcome
from jobs.run.launch import run as execute
from pipeline.core.errors import IncompleteError, UsageError
from pipeline.core.settings import sha
from pipeline.files.storage import as_path, is_remote, write
from pipeline.store.runs.run_folder import RunFolder
from stages.corpora.own.text_files import AskCorpus
from stages.gathered.gathered_pages import (
    AskedAnswer,
    Gathered,
    MemoryPage,
    gather,
    of_methods,
    quoted_answers,
    read_answers,
    read_pages,
)

Warn = Callable[[str], None]
_OPTION = re.compile(r"[+~]{0,2}[a-z_]+(\.[\w.@/-]+)?=")
_EXPERIMENT = "experiment=ask"  # its method, and no rater: there is no reference to rate by
_EXAMPLE = 'gistmill ask book.pdf "Who kept the light?" [method=...] [engine=...]'
_NO_MODEL = (
    "answered by engine={}, which is no language model; engine=vllm or engine=openai, with "
    "engine.model=..., asks one"
)
_MOST_QUOTES = 3
_LEAST_SCORE = 0.3  # of the best passage's score


@dataclass(frozen=True)
class AskWords:
    files: Sequence[str]
    question: str
    options: Sequence[str]

    def asking(self, question: str) -> dict[str, Any]:
        """The config values of a run that asks every file the question, or none if it is ""."""
        path = f"corpus.path={self.files[0]}"
        values = composed_values([_EXPERIMENT, path, *self.options])
        corpus = {"format": "asked", "paths": list(self.files), "question": question}
        return {**values, "corpus": {**values["corpus"], **corpus}}


def ask_words(words: Sequence[str]) -> AskWords:
    """Parse `FILE... QUESTION key=value...`. Raises UsageError for other words."""
    options = [word for word in words if _OPTION.match(word) and not _is_file(word)]
    for key in (word.partition("=")[0].lstrip("+~") for word in options):
        if key in NOT_OF_ASK:
            raise UsageError(f"ask: {key}= is not for it; files and questions say what to read")
    *files, question = [word for word in words if word not in options] or [""]
    if not files or not question.strip():
        raise UsageError(f"ask: name a file or folder, and then the question: {_EXAMPLE}")
    if _is_file(question):
        raise UsageError(f"ask: {question} is a file; the question comes after it: {_EXAMPLE}")
    return AskWords(files, question, [re.sub(r"^method=", "methods=", word) for word in options])


def _is_file(word: str) -> bool:
    with suppress(OSError, UsageError):  # a name that no file can have
        path = as_path(word)
        return not is_remote(path) and path.exists()
    return False


@dataclass(frozen=True)
class Answers:
    """`memories_run`: the run that has the pages of the answers."""

    question: str
    run: str
    memories_run: str
    warehouse: str
    exit_code: int
    num_files: int
    results: Sequence[AskedAnswer]


def ask_files(words: AskWords, each: bool, most_words: int, warn: Warn) -> Answers:
    """Ask all at once, by pages of at most `most_words`, or `each` by itself. Raises as `run`."""
    run = run_of(words.asking(words.question))
    config, corpus = run.config, run.config.corpus
    if not run.methods:
        raise UsageError(f"ask: methods={config.methods} asks nothing; name a method")
    assert isinstance(corpus, AskCorpus)
    corpus.check()
    files, name = corpus.named_files(), corpus.path.resolve().name or "files"
    memories_run: str | None = None
    sources: Sequence[MemoryPage] | None = None
    if len(files) > 1 and not each:
        memories_run, memories = _memories(words, name, warn)
        gathered = gather(name, memories, files, words.question, most_words)
        sources, run = gathered.pages, _of_gathered(words, gathered, run)
    outcome, rows, pages = _execute(run, warn)
    answers = quoted_answers(rows, pages, words.question, files, sources)
    if not config.engine.is_model:
        warn(_NO_MODEL.format(config.engine.title))
    return Answers(words.question, outcome.run, memories_run or outcome.run, config.warehouse,
                   outcome.exit_code, len(files), answers)  # fmt: skip


def _memories(words: AskWords, name: str, warn: Warn) -> tuple[str, list[MemoryPage]]:
    # Every bad file has its own line already.
    changes = {"name": f"memories-{name}", "methods": "", "max_problem_rate": 1.0}
    resolved = run_of({**words.asking(""), **changes})
    outcome, _, pages = _execute(resolved, warn)
    if outcome.exit_code == INCOMPLETE:
        raise IncompleteError("; ".join(outcome.complaints))
    if not (of_shared := of_methods(pages, resolved.steps)):
        raise UsageError(f"{name}: no page of it could be read; see run={outcome.run}")
    return outcome.run, of_shared


def _of_gathered(words: AskWords, gathered: Gathered, run: ResolvedRun) -> ResolvedRun:
    """The run that asks a gathered document; equal content and settings have one name."""
    tables = gathered.tables(words.question)
    name = f"ask-{sha([run.settings_sha, *map(bytes.decode, tables.values())], 8)}"
    folder = RunFolder(run.config.warehouse, name).path / "asked"
    for file, content in tables.items():
        write(folder / file, content)
    path = folder if is_remote(folder) else folder.absolute()  # may be read again from any folder
    options = [word for word in words.options if not re.match(r"[+~]*memory[.=]", word)]
    corpus = ["corpus=tables", f"corpus.path={path}", "memory=given"]
    return run_of({**composed_values([_EXPERIMENT, *corpus, *options]), "run": name})


def _execute(resolved: ResolvedRun, warn: Warn) -> tuple[Outcome, Any, list[MemoryPage]]:
    results: list[Any] = []

    def look(views: Any, _: RunFolder) -> None:
        results.extend((read_answers(views), read_pages(views)))

    outcome = execute(resolved, warn, look=look)
    for complaint in outcome.complaints:
        warn(complaint)
    rows, pages = results
    return outcome, rows, pages


def ask(words: Sequence[str], as_json: bool, warn: Warn, each: bool, most_words: int) -> int:
    """Returns the run's exit code."""
    answers = ask_files(ask_words(words), each, most_words, warn)
    if as_json:
        print_json(answers)
    else:
        for answer in answers.results:
            _print(answer, answers)
    return answers.exit_code


def _print(answer: AskedAnswer, answers: Answers) -> None:
    """Wrapped to a terminal's width, except the command."""
    why_none = f"no answer: {answer.problem} {answer.detail or ''}".rstrip()
    least = _LEAST_SCORE * max((page.score for page in answer.pages), default=0.0)
    quoted = [page for page in answer.pages if page.score and page.score >= least][:_MOST_QUOTES]
    quotes = [f'  {page.file}, page {page.page_index}:\n    "{page.passage}"' for page in quoted]
    basis = f"no passages to quote, as {answer.method} read no whole page"
    if answer.pages:
        files = counted(len({page.file for page in answer.pages}), "file")
        basis = f"rests on {counted(len(answer.pages), 'page')} of {files} (of {answers.num_files})"
    basis += f"; {counted(answer.num_context_words or 0, 'word')} in the final context"
    text = "\n".join([answer.answer or why_none, "", *quotes, basis])
    several = len(answers.results) > 1
    if several:
        print_line(f"== {answer.document_id}, {answer.method}")
    print_line(wrapped(text, shutil.get_terminal_size().columns) if sys.stdout.isatty() else text)
    where = [f"run={answers.run}", f"warehouse={answers.warehouse}"]
    print_line(f"  {shlex.join(['gistmill', 'trace', answer.question_id, *where])}")
    if several:
        print_line()
