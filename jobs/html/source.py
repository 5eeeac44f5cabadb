"""The chunks of a run's page: all of them for a file, which `gistmill report html=FILE` writes, or
one by one as they are requested."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rich.console import Console
from rich.markup import escape
from rich.progress import track

from jobs.compare.compare import RunValues, against_each, against_run
from jobs.config.options import ReadOptions
from jobs.html.contents import Part, Traces, number_questions, summary, values
from jobs.html.run_page import Chunk, compressed_chunk, page
from jobs.output.cells import counted
from jobs.output.print_tables import print_found
from jobs.report.columns import PAPER, read_names, with_columns
from jobs.report.report import create_chosen_table, make_report
from pipeline.core.errors import UsageError
from pipeline.core.registry import load_plugins, plugin_folders
from pipeline.files.storage import as_path, delete_abandoned, part_name
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder

_OF_A_CHUNK = 50  # questions, all of which are read when one is opened
_AT_ONCE = 4_000  # answers whose rows are read by one query and held in memory
_LARGE = 200e6  # bytes that a browser takes a while to read


class Source:
    """A run as its page shows it, as of the time it was opened. Not safe for threads. Raises
    UsageError as `gistmill report` does."""

    def __init__(self, options: ReadOptions) -> None:
        self._opened = ExitStack()
        self._values: RunValues | None = None  # read when a comparison is first looked at
        load_plugins(plugin_folders(options.plugins))  # before views of their records are made
        whole = make_report(options)
        names = read_names(options.names or PAPER, whole.foot["plugins"])
        report = with_columns(whole, options.columns, names)
        self.run = report.run
        self._options = replace(options, run=report.run)
        self._connection = self._opened.enter_context(connect(options.warehouse, self.run))
        create_chosen_table(self._connection, options)
        is_subset = options.where is not None
        number_questions(self._connection, report.foot["rater"], is_subset)
        facts = RunFolder(options.warehouse, self.run).report_facts("judging")
        content = summary(self._connection, report, names, is_subset)
        self.summary = {**content, "judging": facts["judging"]}
        # Per question.
        self._num_answers = len({row.method for row in report.rows}) * report.foot["repeats"]
        self._traces = Traces(self._connection, facts["stages"])

    def close(self) -> None:
        self._opened.close()

    def first(self, is_served: bool) -> Chunk:
        """The chunk `index`, with which a page begins. In a file it states which chunk holds each
        document and question; when served, each has its own."""
        places: dict[str, Any] = {} if is_served else self._places()
        return "index", compressed_chunk({"content": {**self.summary, **places}})

    def num_chunks(self) -> int:
        """The number of a file's chunks, without the first."""
        scores, measures = self.summary["report"]["measures"], self.summary["measures"]
        return len(scores) + len(measures) + len(self._parts())

    def chunks(self) -> Iterator[Chunk]:
        """All chunks of a file but the first."""
        for number in range(len(self.summary["measures"])):
            yield f"measure-{number}", self._measure(number)
        for number in range(len(self.summary["report"]["measures"])):
            yield f"against-{number}", self._against(number)
        batches = _batched(self._parts(), self._num_answers)
        contents = (content for parts in batches for content in self._traces.contents(parts))
        for number, content in enumerate(contents):
            yield f"part-{number}", compressed_chunk(content)

    def chunk(self, name: str) -> bytes | None:
        """One chunk of a served page; None if there is no such chunk."""
        if name == "index":
            return self.first(is_served=True)[1]
        kind, _, text = name.partition("-")
        text, _, other = text.partition("-")  # the name of another run
        is_number = text.isascii() and text.isdigit() and len(text) < 10
        if not is_number or (other and kind != "against"):
            return None
        number = int(text)
        if kind == "measure" and number < len(self.summary["measures"]):
            return self._measure(number)
        if kind == "against" and number < len(self.summary["report"]["measures"]):
            return self._against(number, unquote(other))
        if kind == "question" and number < len(self.summary["questions"]):
            row = self.summary["questions"][number]
            document = self.summary["documents"][row["document"]]
            return self._part(Part(document["document_id"], (row["question_id"],)))
        if kind == "document" and number < len(self.summary["documents"]):
            return self._part(Part(self.summary["documents"][number]["document_id"], ()))
        return None

    def _part(self, part: Part) -> bytes:
        (content,) = self._traces.contents([part])
        return compressed_chunk(content)

    def _measure(self, number: int) -> bytes:
        by_method = values(self._connection, self.summary["measures"][number])
        return compressed_chunk({"content": by_method})

    def _against(self, number: int, other: str = "") -> bytes:
        """By a measure of answers, every method against each as the baseline, or against itself in
        the other run. Raises UsageError if that has none of these values."""
        if self._values is None:
            self._values = self._opened.enter_context(RunValues.opened(self._options))
        measure = self.summary["report"]["measures"][number]
        if not other:
            return compressed_chunk({"content": against_each(self._values, measure)})
        with RunValues.opened(replace(self._options, run=other)) as values:
            return compressed_chunk({"content": against_run(self._values, values, measure)})

    def _parts(self) -> list[Part]:
        """A document with many questions has several parts."""
        asked: dict[int, list[str]] = defaultdict(list)
        for row in self.summary["questions"]:
            asked[row["document"]].append(row["question_id"])
        return [
            Part(document["document_id"], tuple(names[begin : begin + _OF_A_CHUNK]))
            for document in self.summary["documents"]
            for names in (asked[document["number"]],)
            for begin in range(0, max(1, len(names)), _OF_A_CHUNK)
        ]

    def _places(self) -> dict[str, list[int]]:
        of_questions: list[int] = []
        of_documents: dict[str, int] = {}
        for number, part in enumerate(self._parts()):
            of_questions += [number] * len(part.question_ids)
            of_documents.setdefault(part.document_id, number)
        return {"question_parts": of_questions, "document_parts": [*of_documents.values()]}


def _batched(parts: Iterable[Part], num_answers: int) -> Iterator[list[Part]]:
    """In order, in batches of at most _AT_ONCE answers, `num_answers` per question, or one part."""
    batch: list[Part] = []
    size = 0
    for part in parts:
        of_part = max(1, len(part.question_ids)) * max(1, num_answers)
        if batch and size + of_part > _AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(part)
        size += of_part
    if batch:
        yield batch


def check_page_name(file: Path) -> None:
    """Raise UsageError unless the name ends in .html and its folder exists."""
    if file.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"html={file}: write a name that ends in .html")
    if not file.parent.is_dir():
        raise UsageError(f"html={file}: no folder {file.parent}; write it elsewhere")


def write_page(options: ReadOptions, file: Path) -> dict[str, Any]:
    """Write the page of a run, with a progress bar in a terminal; an older file is replaced once
    the new one is whole. Raises UsageError as `gistmill report` does, and for an unwritable
    file."""
    check_page_name(file)
    delete_abandoned(as_path(file))
    beside = file.with_name(part_name(file.name))
    console = Console(stderr=True, no_color=True)
    with closing(Source(options)) as source:
        chunks = track(
            source.chunks(), f"writing {escape(file.name)}", source.num_chunks(),
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        try:
            page(source.run, [source.first(is_served=False)], chunks).dump(
                str(beside), encoding="utf-8"
            )
            beside.replace(file)
        except OSError as error:
            raise UsageError(f"html={file}: {error.strerror}; write it elsewhere") from None
        finally:
            beside.unlink(missing_ok=True)
        numbers = {key: len(source.summary[key]) for key in ("documents", "questions")}
        return {"file": str(file), "run": source.run, **numbers, "bytes": file.stat().st_size}


def show_written(options: ReadOptions, file: Path, as_json: bool) -> None:
    print_found(write_page(options, file), _lines, as_json)


def _lines(written: Mapping[str, Any]) -> list[str]:
    line = (
        f"{written['file']}: run {written['run']}, {counted(written['questions'], 'question')} "
        f"about {counted(written['documents'], 'document')}, {written['bytes'] / 1e6:.1f} MB"
    )
    if written["bytes"] > _LARGE:
        line += "\na large file; gistmill view shows the same and reads what is opened"
    return [line]
