"""`gistmill ask`, a single question; `gistmill chat`, as many as come, by engines, memories and an
index that are loaded once."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from jobs.ask.ask_words import ask_words, chat_words
from jobs.ask.asker import Asked, Asker
from jobs.ask.doing import Doing
from jobs.ask.show_answer import print_asked, write_html
from jobs.html.page_file import check_page_name
from jobs.output.cells import counted, printable
from jobs.output.print_tables import json_text, print_json, print_line
from pipeline.core.errors import CommandError

_END = "/quit"
_HELP = "Ask; an empty line ends."


def ask(
    words: Sequence[str],
    as_json: bool,
    warn: Callable[[str], None],
    each: bool,
    most_words: int,
    html: Path | None,
) -> int:
    """Ask, print the answer and the passages that it rests on; returns the run's exit code."""
    named, question = ask_words(words)
    if html:
        check_page_name(html)  # before anything is read
    with Doing(warn) as doing, Asker(named, doing, most_words) as asker:
        asked = asker.ask(question, each)
    if as_json:
        print_json(asked)
    else:
        print_asked(asked)
    if html:
        write_html(asked, html)
    return asked.exit_code


def chat(words: Sequence[str], as_json: bool, warn: Callable[[str], None], most_words: int) -> int:
    """Answer questions until there are no more, one JSON object a line with `as_json`; a question
    that fails is a line. Returns the last exit code that is not 0, else 0."""
    named, code = chat_words(words), 0
    doing = Doing(warn)
    stream = _Stream(doing.hush)
    with (
        doing,
        Asker(named, doing, most_words, None if as_json else stream.tell) as asker,
    ):
        memories = asker.memories()
        doing.is_done()
        size = f"{counted(len(asker.files), 'file')}, {counted(len(memories.pages), 'page')}"
        warn(f"{size}. {_HELP}")
        for question in _questions():
            try:
                asked = asker.ask(question)
            except CommandError as error:
                doing.warn(f"gistmill: {' '.join(str(error).split())}")
                code = error.exit_code
                continue
            code = asked.exit_code or code
            if as_json:
                print_line(json_text(asked))
            else:
                stream.finish(asked)
            sys.stdout.flush()
    return code


def _questions() -> Iterator[str]:
    """The lines of standard input, up to an empty one, `/quit` or its end."""
    is_typed = sys.stdin.isatty()
    while True:
        try:
            line = input("\n> ") if is_typed else next(sys.stdin)
        except (EOFError, StopIteration):
            return
        if line.strip() in ("", _END):
            return
        yield line.strip()


class _Stream:
    """Prints a reply while it comes; `before` is called before its first words."""

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._printed = ""

    def tell(self, text: str) -> None:
        """Print what is new of the text so far; a text that begins anew is another reply's."""
        if not self._printed or not text.startswith(self._printed):
            self._before()
            sys.stdout.write("\n" if self._printed else "")
            self._printed = ""
        sys.stdout.write(printable(text[len(self._printed) :]))
        sys.stdout.flush()
        self._printed = text

    def finish(self, asked: Asked) -> None:
        """Print what has not been printed of the answers."""
        streamed, self._printed = self._printed.strip(), ""
        if streamed:
            print_line()
        print_asked(asked, streamed)
        print_line()
