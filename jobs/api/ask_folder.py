"""`gistmill ask`: one question to files or folders, answered from stored memories.

Each document is asked by itself, as a memory is one document's: several files give several answers.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.graph.read_run import composed_values, run_of
from jobs.graph.resolved_run import ResolvedRun
from jobs.output.cells import counted
from jobs.output.print_tables import print_json, print_line
from jobs.run.launch import run as execute
from pipeline.core.errors import UsageError
from pipeline.store.sql.connection import query
from pipeline.store.sql.memory_names import SHARED

_OPTION = re.compile(r"[+~]{0,2}[a-z_]+(\.[\w.@/-]+)?=")
_EXPERIMENT = "experiment=ask"  # its method, and no rater: there is no reference to rate by
_EXAMPLE = 'gistmill ask book.pdf "Who kept the light?" [method=...] [engine=...]'
_REFUSED = ("corpus", "corpus.path", "corpus.format", "corpus.split", "experiment", "run")
_EXCERPT_CHARS = 200
_NO_MODEL = (
    "answered by engine={}, which is no language model; engine=vllm or engine=openai, with "
    "engine.model=..., asks one"
)


@dataclass(frozen=True)
class AskedAnswer:
    """The reply of a method about one document."""

    document_id: str
    question_id: str
    method: str
    answer: str | None
    problem: str | None
    detail: str | None
    num_context_words: int | None
    memory: str | None
    num_pages: int  # of the memory
    pages: list[dict[str, Any]]  # that it is based on: `page_index` and `text`


def asked_run(words: Sequence[str]) -> tuple[ResolvedRun, str]:
    """The run of `FILE... QUESTION key=value...`, and the question.

    Raises UsageError where a file or the question is missing, or an option is not for `ask`.
    """
    options = [word for word in words if _OPTION.match(word) and not _is_file(word)]
    *files, question = [word for word in words if word not in options] or [""]
    if not files or not question.strip():
        raise UsageError(f"ask: name a file or folder, and then the question: {_EXAMPLE}")
    if _is_file(question):
        raise UsageError(f"ask: {question} is a file; the question comes after it: {_EXAMPLE}")
    keys = [word.partition("=")[0].lstrip("+~") for word in options]
    for key in keys:
        if key in _REFUSED:
            raise UsageError(f"ask: {key}= is not for it; files and the question say what to read")
    given = [re.sub(r"^method=", "methods=", word) for word in options]
    values = composed_values([_EXPERIMENT, f"corpus.path={files[0]}", *given])
    asked = {"format": "asked", "paths": files, "question": question}
    values["corpus"] = {**values["corpus"], **asked}
    resolved = run_of(values)
    if not resolved.methods:
        raise UsageError(f"ask: methods={resolved.config.methods} asks nothing; name a method")
    return resolved, question


def _is_file(word: str) -> bool:
    with suppress(OSError):  # of a name that no file can have
        return Path(word).exists()
    return False


def ask(words: Sequence[str], as_json: bool, warn: Callable[[str], None]) -> int:
    """Ask, print the answers and the pages they are based on; returns the exit code of the run."""
    resolved, question = asked_run(words)
    rows: list[dict[str, Any]] = []
    outcome = execute(resolved, warn, look=lambda views, _: rows.extend(query(views, _ANSWERS)))
    answers = [AskedAnswer(**row) for row in rows]
    config = resolved.config
    if as_json:
        facts = {"question": question, "run": outcome.run, "warehouse": config.warehouse}
        print_json({**facts, "exit_code": outcome.exit_code, "results": answers})
    else:
        where = [f"run={outcome.run}"]
        where += [] if config.warehouse == "warehouse" else [f"warehouse={config.warehouse}"]
        for answer in answers:
            _print(answer, where, len(answers) > 1)
    for complaint in outcome.complaints:
        warn(complaint)
    if not config.engine.is_model:
        warn(_NO_MODEL.format(config.engine.title))
    return outcome.exit_code


def _print(answer: AskedAnswer, where: Sequence[str], is_one_of_several: bool) -> None:
    document_id, pages, memory = answer.document_id, answer.pages, answer.memory
    if is_one_of_several:
        print_line(f"== {document_id}, {answer.method}")
    none = f"no answer: {answer.problem} {answer.detail or ''}".rstrip()
    print_line(answer.answer or none)
    indexes = [str(page["page_index"]) for page in pages]
    which = f"page{'' if len(pages) == 1 else 's'} {', '.join(indexes)} of {answer.num_pages}"
    words = f"{counted(answer.num_context_words or 0, 'word')} in the final context"
    print_line(f"\nrests on {which if pages else 'no whole page'}; {words}")
    for page in pages:
        line = " ".join(page["text"].split())  # cut within words, which not all languages separate
        more = " [...]" if len(line) > _EXCERPT_CHARS else ""
        print_line(f"  page {page['page_index']}: {line[:_EXCERPT_CHARS]}{more}")
    if answer.num_pages:
        read = [f"page={','.join(indexes)}"] if pages else []
        of = [] if memory in (None, SHARED) else [f"memory={memory}"]
        mark = ["--"] if document_id.startswith("-") else []  # the id is no option
        print_line(f"  {shlex.join(['gistmill', 'show', *mark, document_id, *read, *of, *where])}")
    print_line(f"  {shlex.join(['gistmill', 'trace', answer.question_id, *where])}")
    if is_one_of_several:
        print_line()


# The texts of pages themselves stand first among those of a page.
_ANSWERS = """
with texts as (
  select document_id, memory, page_index, arg_min(text, place) as text
  from page_texts group by all),
memories_of as (
  select document_id, memory, count(*) as num_pages,
    map_from_entries(list({k: page_index, v: text})) as texts
  from texts group by all)
select document_id, question_id, method, answer, problem, detail, num_context_words, r.memory,
  coalesce(num_pages, 0) as num_pages,
  list_transform(page_indexes, lambda page:
    {page_index: page, text: coalesce(texts[page], '')}) as pages
from results r left join memories_of using (document_id, memory)
order by document_id, method, repeat"""
