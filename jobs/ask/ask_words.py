"""The words of `gistmill ask` and `chat`: files, the question, and the settings of their runs."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jobs.graph.read_run import composed_values
from pipeline.core.errors import UsageError
from pipeline.files.place import as_path, is_remote

_OPTION = re.compile(r"[+~]{0,2}[a-z_]+(\.[\w.@/-]+)?=")
_EXPERIMENT = "experiment=ask"  # its method, and no rater: there is no reference to rate by
_ASK = 'gistmill ask book.pdf "Who kept the light?" [method=...] [engine=...]'
_CHAT = "gistmill chat book.pdf [method=...] [engine=...]"
_REFUSED = ("corpus", "corpus.path", "corpus.format", "corpus.split", "experiment", "run")


@dataclass(frozen=True)
class AskWords:
    """Files or folders, and the `key=value` words of the runs that ask them."""

    files: Sequence[str]
    options: Sequence[str]

    def asking(self, question: str) -> dict[str, Any]:
        """The plain values of a run that asks every file the question; "" is none."""
        path = f"corpus.path={self.files[0]}"
        values = composed_values([_EXPERIMENT, path, *self.options])
        asked = {"format": "asked", "paths": list(self.files), "question": question}
        return {**values, "corpus": {**values["corpus"], **asked}}

    def reading_memory(self, folder: str) -> dict[str, Any]:
        """Those of a run of the corpus `tables` in `folder`, whose documents bring their memory."""
        own = [word for word in self.options if not re.match(r"[+~]*memory[.=]", word)]
        corpus = ["corpus=tables", f"corpus.path={folder}", "memory=given"]
        return composed_values([_EXPERIMENT, *corpus, *own])


def ask_words(words: Sequence[str]) -> tuple[AskWords, str]:
    """The words `FILE... QUESTION key=value...`. Raises UsageError where a file or the question is
    missing, or an option is not for `ask`."""
    files, options = _split(words, _ASK)
    *files, question = files or [""]
    if not files or not question.strip():
        raise UsageError(f"ask: name a file or folder, and then the question: {_ASK}")
    if _is_file(question):
        raise UsageError(f"ask: {question} is a file; the question comes after it: {_ASK}")
    return AskWords(files, options), question


def chat_words(words: Sequence[str]) -> AskWords:
    """The words `FILE... key=value...`. Raises UsageError as `ask_words`."""
    files, options = _split(words, _CHAT)
    if not files:
        raise UsageError(f"chat: name a file or folder: {_CHAT}")
    return AskWords(files, options)


def _split(words: Sequence[str], example: str) -> tuple[list[str], list[str]]:
    """Files with what else is no option, and the options. `example`: of the verb."""
    verb = example.split()[1]
    options = [word for word in words if _OPTION.match(word) and not _is_file(word)]
    for key in (word.partition("=")[0].lstrip("+~") for word in options):
        if key in _REFUSED:
            raise UsageError(f"{verb}: {key}= is not for it; files and questions say what to read")
    others = [word for word in words if word not in options]
    return others, [re.sub(r"^method=", "methods=", word) for word in options]


def _is_file(word: str) -> bool:
    with suppress(OSError, UsageError):  # of a name that no file can have
        path = as_path(word)
        return not is_remote(path) and path.exists()
    return False
