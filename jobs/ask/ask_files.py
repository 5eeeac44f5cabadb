"""`gistmill ask`: asks files a question, in runs of the warehouse, and prints the answer, the
passages that it rests on with file and page, and the commands that show more.

Many files are asked at once in two runs. The first makes the pages and gists of every file, which
are kept, so an added file costs only itself. The second asks one document made of the pages, from
all files, that match the question best, by any method.
"""

import re
import shlex
import shutil
import sys
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from jobs.config.options import ReadOptions
from jobs.graph.read_run import composed_values, run_of
from jobs.graph.resolved_run import ResolvedRun
from jobs.html.page_file import check_page_name, write_page
from jobs.output.cells import counted
from jobs.output.print_tables import print_json, print_line
from jobs.output.terminal import wrapped
from jobs.run.launch import INCOMPLETE, Outcome
from jobs.run.launch import run as execute
from pipeline.core.errors import IncompleteError, UsageError
from pipeline.core.settings import sha
from pipeline.files.storage import as_path, is_remote, write
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.memory_names import SHARED
from stages.corpora.own.text_files import AskCorpus
from stages.gathered.gathered_pages import (
    AskedAnswer,
    Gathered,
    MemoryPage,
    QuotedPage,
    gather,
    of_methods,
    quoted_answers,
    rarity,
    read_answers,
    read_pages,
)

T = TypeVar("T")
MOST_WORDS = 6000
_OPTION = re.compile(r"[+~]{0,2}[a-z_]+(\.[\w.@/-]+)?=")
_EXPERIMENT = "experiment=ask"  # its method, and no rater: there is no reference to rate by
_EXAMPLE = 'gistmill ask book.pdf "Who kept the light?" [method=...] [engine=...]'
_REFUSED = ("corpus", "corpus.path", "corpus.format", "corpus.split", "experiment", "run")
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
        """The config values of a run that asks every file the question; "" makes one without
        questions."""
        path = f"corpus.path={self.files[0]}"
        values = composed_values([_EXPERIMENT, path, *self.options])
        asked = {"format": "asked", "paths": list(self.files), "question": question}
        return {**values, "corpus": {**values["corpus"], **asked}}

    def reading_memory(self, folder: str) -> dict[str, Any]:
        """The config values of a run of corpus=tables in `folder`, which has the memory, too."""
        own = [word for word in self.options if not re.match(r"[+~]*memory[.=]", word)]
        corpus = ["corpus=tables", f"corpus.path={folder}", "memory=given"]
        return composed_values([_EXPERIMENT, *corpus, *own])


def ask_words(words: Sequence[str]) -> AskWords:
    """Parse `FILE... QUESTION key=value...`. Raises UsageError where a file or the question is
    missing, or an option is not for `ask`."""
    options = [word for word in words if _OPTION.match(word) and not _is_file(word)]
    for key in (word.partition("=")[0].lstrip("+~") for word in options):
        if key in _REFUSED:
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
class Asked:
    """`memories_run`: the run that has the pages of the answers."""

    question: str
    run: str
    memories_run: str
    warehouse: str
    exit_code: int
    num_files: int
    results: Sequence[AskedAnswer]


def ask_files(words: AskWords, each: bool, most_words: int, warn: Callable[[str], None]) -> Asked:
    """Ask all files at once, by pages of at most `most_words`, or `each` by itself.

    `warn` gets the run's complaints. Raises UsageError where nothing can be asked, and as `run`
    does.
    """
    run = run_of(words.asking(words.question))
    config, corpus = run.config, run.config.corpus
    if not run.methods:
        raise UsageError(f"ask: methods={config.methods} asks nothing; name a method")
    assert isinstance(corpus, AskCorpus)
    corpus.check()
    files, name = corpus.named_files(), corpus.path.resolve().name or "files"
    memories_run: str | None = None
    memories: Sequence[MemoryPage] = ()
    sources: Sequence[MemoryPage] | None = None
    if len(files) > 1 and not each:
        memories_run, memories = _memories(words, name, warn)
        chosen = gather(name, memories, files, words.question, most_words)
        sources, run = chosen.pages, _of_gathered(words, chosen, run)
    outcome, (rows, pages) = _execute(run, lambda v: (read_answers(v), read_pages(v)), warn)
    weight = rarity([page.text for page in memories or pages])
    answers = quoted_answers(rows, pages, words.question, files, weight, sources)
    if not config.engine.is_model:
        warn(_NO_MODEL.format(config.engine.title))
    return Asked(words.question, outcome.run, memories_run or outcome.run, config.warehouse,
                 outcome.exit_code, len(files), answers)  # fmt: skip


def _memories(
    words: AskWords, name: str, warn: Callable[[str], None]
) -> tuple[str, list[MemoryPage]]:
    """Make the pages of all files. Raises IncompleteError, and UsageError if there are none."""
    # Every bad file has its own line already.
    own = {"name": f"memories-{name}", "methods": "", "max_problem_rate": 1.0}
    resolved = run_of({**words.asking(""), **own})
    outcome, pages = _execute(resolved, read_pages, warn)
    if outcome.exit_code == INCOMPLETE:
        raise IncompleteError("; ".join(outcome.complaints))
    if not (found := of_methods(pages, resolved.steps)):
        raise UsageError(f"{name}: no page of it could be read; see run={outcome.run}")
    return outcome.run, found


def _of_gathered(words: AskWords, chosen: Gathered, asked: ResolvedRun) -> ResolvedRun:
    """The run that asks a gathered document; equal content and settings give an equal name."""
    tables = chosen.tables(words.question)
    name = f"ask-{sha([asked.settings_sha, *map(bytes.decode, tables.values())], 8)}"
    folder = RunFolder(asked.config.warehouse, name).path / "asked"
    for file, content in tables.items():
        write(folder / file, content)
    place = folder if is_remote(folder) else folder.absolute()  # may be read again from any folder
    return run_of({**words.reading_memory(str(place)), "run": name})


def _execute(
    resolved: ResolvedRun, read: Callable[[Any], T], warn: Callable[[str], None]
) -> tuple[Outcome, T]:
    found: list[T] = []
    outcome = execute(resolved, warn, look=lambda views, _: found.append(read(views)))
    for complaint in outcome.complaints:
        warn(complaint)
    return outcome, found[0]


def ask(
    words: Sequence[str],
    as_json: bool,
    warn: Callable[[str], None],
    each: bool,
    most_words: int,
    html: Path | None,
) -> int:
    """Ask, and print the answer and the passages that it rests on; returns the run's exit code."""
    named = ask_words(words)
    if html:
        check_page_name(html)  # before anything is read
    asked = ask_files(named, each, most_words, warn)
    if as_json:
        print_json(asked)
    else:
        for answer in asked.results:
            _print(answer, asked)
    if html:
        _write_html(asked, html)
    return asked.exit_code


def _print(answer: AskedAnswer, asked: Asked) -> None:
    """Wrapped to a terminal's width, except the commands."""
    why_none = f"no answer: {answer.problem} {answer.detail or ''}".rstrip()
    least = _LEAST_SCORE * max((page.score for page in answer.pages), default=0.0)
    quoted = [page for page in answer.pages if page.score and page.score >= least][:_MOST_QUOTES]
    quotes = [f'  {page.file}, page {page.page_index}:\n    "{page.passage}"' for page in quoted]
    text = "\n".join([answer.answer or why_none, "", *quotes, _read(answer, asked)])
    if len(asked.results) > 1:
        print_line(f"== {answer.document_id}, {answer.method}")
    is_terminal = sys.stdout.isatty()
    print_line(wrapped(text, shutil.get_terminal_size().columns) if is_terminal else text)
    for command in _commands(answer, asked, quoted):
        print_line(f"  {command}")
    if len(asked.results) > 1:
        print_line()


def _write_html(asked: Asked, file: Path) -> None:
    """Write the page of the run, print the address of its first answer, and open it if standard
    output is a terminal. Raises UsageError as `write_page` does."""
    write_page(ReadOptions(as_path(asked.warehouse), asked.run), file)
    address = file.absolute().as_uri()
    if asked.results:
        first = asked.results[0]
        address += "#" + urlencode({"question": first.question_id, "method": first.method})
    print_line(address)
    if sys.stdout.isatty():
        webbrowser.open(address)


def _read(answer: AskedAnswer, asked: Asked) -> str:
    words = f"{counted(answer.num_context_words or 0, 'word')} in the final context"
    if not answer.pages:
        return f"no passages to quote, as {answer.method} read no whole page; {words}"
    indexes = ", ".join(map(str, sorted(page.page_index for page in answer.pages)))
    which = f"page{'' if len(answer.pages) == 1 else 's'} {indexes} of {answer.num_pages}"
    if asked.memories_run != asked.run:
        files = {page.file for page in answer.pages}
        which = f"{counted(len(answer.pages), 'page')} of {counted(len(files), 'file')} "
        which += f"(of {asked.num_files})"
    return f"rests on {which}; {words}"


def _commands(answer: AskedAnswer, asked: Asked, quoted: Sequence[QuotedPage]) -> Iterator[str]:
    is_usual = asked.warehouse == "warehouse"
    where = [] if is_usual else [f"warehouse={asked.warehouse}"]
    shown = quoted[0].document_id if quoted else answer.document_id
    own = sorted(page.page_index for page in answer.pages if page.document_id == shown)
    if answer.num_pages:
        read = [f"page={','.join(map(str, own))}"] if own else []
        is_own = asked.memories_run != asked.run or answer.memory in (None, SHARED)
        of = [] if is_own else [f"memory={answer.memory}"]
        mark = ["--"] if shown.startswith("-") else []  # the id is no option
        run = asked.memories_run if own else asked.run
        yield shlex.join(["gistmill", "show", *mark, shown, *read, *of, f"run={run}", *where])
    yield shlex.join(["gistmill", "trace", answer.question_id, f"run={asked.run}", *where])
