"""The verb `gistmill ask`, and what it prints: the answer, the passages that it rests on with file
and page, and the commands that go on from there."""

import shlex
import shutil
import sys
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlencode

from jobs.ask.asker import Asked, ask_files, ask_words
from jobs.config.options import ReadOptions
from jobs.html.page_file import check_page_name, write_page
from jobs.output.cells import counted
from jobs.output.pager import hanging
from jobs.output.print_tables import print_json, print_line
from pipeline.files.place import as_path
from pipeline.store.sql.memory_names import SHARED
from stages.gathered.quoted import AskedAnswer, QuotedPage

_MOST_QUOTES = 3
_LEAST_SCORE = 0.3  # of the best passage's


def ask(
    words: Sequence[str],
    as_json: bool,
    warn: Callable[[str], None],
    each: bool,
    most_words: int,
    html: Path | None,
) -> int:
    """Ask, print the answer and the passages that it rests on; returns the run's exit code."""
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
    """Print an answer, its passages and what was read, wrapped to a terminal's width; then the
    commands, which are not."""
    why_none = f"no answer: {answer.problem} {answer.detail or ''}".rstrip()
    quoted = _quoted(answer.pages)
    quotes = [f'  {page.file}, page {page.page_index}:\n    "{page.passage}"' for page in quoted]
    text = "\n".join([answer.answer or why_none, "", *quotes, _read(answer, asked)])
    if len(asked.results) > 1:
        print_line(f"== {answer.document_id}, {answer.method}")
    is_terminal = sys.stdout.isatty()
    print_line(hanging(text, shutil.get_terminal_size().columns) if is_terminal else text)
    for command in _commands(answer, asked, quoted):
        print_line(f"  {command}")
    if len(asked.results) > 1:
        print_line()


def _write_html(asked: Asked, file: Path) -> None:
    """Write the page of the run, print the address of the first answer in it, and open it where
    somebody looks. Raises UsageError as `write_page` does."""
    write_page(ReadOptions(as_path(asked.warehouse), asked.run), file)
    address = file.absolute().as_uri()
    if asked.results:
        first = asked.results[0]
        address += "#" + urlencode({"question": first.question_id, "method": first.method})
    print_line(address)
    if sys.stdout.isatty():
        webbrowser.open(address)


def _quoted(pages: Sequence[QuotedPage]) -> list[QuotedPage]:
    """The pages whose passages are printed, the best first."""
    least = _LEAST_SCORE * max((page.score for page in pages), default=0.0)
    return [page for page in pages if page.score and page.score >= least][:_MOST_QUOTES]


def _read(answer: AskedAnswer, asked: Asked) -> str:
    """The line about what was read: pages, files and words."""
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
    """The commands that show the pages and the trace of an answer."""
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
