"""The page of a run. Its data are chunks, which are JSON in gzip: the first, `index`, has the
report, the causes of problems and a line per question and document; others have, per document and
question, the rows of every stage and every call with the prompt that was sent. `gistmill report
html=FILE` writes all chunks into a file; a served page requests them one by one. The page's HTML
has our script and style, and a content security policy (CSP) that allows no other."""

import base64
import gzip
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.environment import TemplateStream
from markupsafe import Markup

from jobs.compare.compare import RunValues, against_each, against_run
from jobs.config.options import ReadOptions
from jobs.export.frontier import drawn_columns, frontier_svg, points_of, tones_of
from jobs.output.print_tables import counted, json_value
from jobs.problems.causes import causes, question_problems
from jobs.report.columns import PAPER, Names, group_of, named, read_names, with_columns
from jobs.report.render import BEST, notes, provenance_line
from jobs.report.report import Report, create_chosen_table, make_report
from jobs.trace import trace
from jobs.trace.trace import Rows, Section
from pipeline.core.errors import UsageError
from pipeline.core.registry import load_plugins, plugin_folders
from pipeline.core.rows import PLACE, RawText, columns_line
from pipeline.core.sql_files import filled, sql_beside
from pipeline.files.storage import part_name
from pipeline.store import connect
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.sql.connection import query

_HERE = Path(__file__).parent
_SCRIPTS = (  # in their order
    "dom", "address", "data", "tables", "pictures", "problems", "overview", "lists", "runs",
    "marks", "calls", "memory", "walk", "attempts", "reading_map", "panes", "question", "document",
    "main",
)  # fmt: skip
_STYLES = ("base", "tables", "pictures", "question", "print")
_LONG = 160  # characters; shorter texts stay as they are
_LINES = "$"  # a long text is {"$": [numbers of its lines]}; no other list has this key

Chunk = tuple[str, bytes]  # its name, and JSON in gzip
_SQL = sql_beside(__file__)
_OF_A_CHUNK = 50  # questions, all of which are read when one is opened
_AT_ONCE = 4_000  # answers whose rows are read by one query and held in memory
_SHOWN_CHARS = 300  # of a question, in the list of all
_OF_LISTED = """if(question_id is null,
  document_id in (select document_id from numbered_documents),
  question_id in (select question_id from numbered_questions))"""
_OF_SUBSET = "semi join (from questions semi join chosen using (question_id)) using (document_id)"
# The names of a served page's chunks but the first; `against` may name another run.
_CHUNK = re.compile(r"(measure|against|question|document)-(\d{1,9})(?:-(.*))?", re.ASCII)


@dataclass(frozen=True)
class Part:
    """A document and those of its questions that share a chunk."""

    document_id: str
    question_ids: tuple[str, ...]


class Source:
    """A run as its page shows it, as of the time it was opened. Not safe for threads. Raises
    UsageError as `gistmill report` does."""

    def __init__(self, options: ReadOptions) -> None:
        self._opened = ExitStack()
        self._values: RunValues | None = None  # read when a comparison is first looked at
        load_plugins(plugin_folders(options.plugins))  # before views of their records are made
        whole = make_report(options)
        names = read_names(options.names or PAPER, whole.foot["plugins"])
        report = with_columns(whole, options.columns)
        self.run = report.run
        self._options = replace(options, run=report.run)
        self._connection = self._opened.enter_context(connect(options.warehouse, self.run))
        create_chosen_table(self._connection, options)
        where = _OF_SUBSET if options.where is not None else ""
        query(self._connection, filled(_SQL["numbered_documents"], where=where))
        shown_chars = str(_SHOWN_CHARS)
        query(self._connection, filled(_SQL["numbered_questions"], shown_chars=shown_chars))
        self._connection.execute("set variable rater = ?", [report.foot["rater"]])
        query(self._connection, _SQL["valued"])  # once, as the view `measures` joins many tables
        facts = RunFolder(options.warehouse, self.run).report_facts("judging")
        content = _index(self._connection, report, names, options.where is not None)
        self.index = {**content, "judging": facts["judging"]}
        methods = {row.method for row in report.rows}
        self._num_answers = len(methods) * report.foot["repeats"]  # to each question
        trace.order_stages(self._connection, facts["stages"])
        steps = query(self._connection, "select step_id, upstream from steps")
        self._upstream = {row["step_id"]: row["upstream"] for row in steps}

    def close(self) -> None:
        self._opened.close()

    def chunks(self) -> Iterator[Chunk]:
        """All chunks of a file. The first, `index`, also has for every question and document the
        number of its part."""
        parts_of_documents: dict[str, int] = {}
        for number, part in enumerate(self._parts):
            parts_of_documents.setdefault(part.document_id, number)
        yield "index", compressed_chunk({"content": {
            **self.index,
            "question_parts": [n for n, part in enumerate(self._parts) for _ in part.question_ids],
            "document_parts": [*parts_of_documents.values()],
        }})  # fmt: skip
        for number in range(len(self.index["measures"])):
            yield f"measure-{number}", self._measure(number)
        for number in range(len(self.index["report"]["measures"])):
            yield f"against-{number}", self._against(number)
        contents = (content for parts in self._batches() for content in self._contents(parts))
        for number, content in enumerate(contents):
            yield f"part-{number}", compressed_chunk(content)

    def chunk(self, name: str) -> bytes | None:
        """One chunk of a served page, where every question and document has its own; None if there
        is no such chunk."""
        if name == "index":
            return compressed_chunk({"content": self.index})
        if (match := _CHUNK.fullmatch(name)) is None:
            return None
        kind, number, other = match[1], int(match[2]), match[3]
        documents, questions = self.index["documents"], self.index["questions"]
        listed = {"measure": self.index["measures"], "against": self.index["report"]["measures"],
                  "question": questions, "document": documents}  # fmt: skip
        if number >= len(listed[kind]) or (other and kind != "against"):
            return None
        if kind == "measure":
            return self._measure(number)
        if kind == "against":
            return self._against(number, unquote(other or ""))
        if kind == "document":
            part = Part(documents[number]["document_id"], ())
        else:
            row = questions[number]
            part = Part(documents[row["document"]]["document_id"], (row["question_id"],))
        (content,) = self._contents([part])
        return compressed_chunk(content)

    def _measure(self, number: int) -> bytes:
        """By method, a value per question in the order of their numbers; None if it has none."""
        self._connection.execute("set variable measure = ?", [self.index["measures"][number]])
        rows = query(self._connection, _SQL["values"])
        return compressed_chunk({"content": {row["method"]: row["in_order"] for row in rows}})

    def _against(self, number: int, other: str = "") -> bytes:
        """By a measure of answers, every method against each as the baseline, or against itself in
        the other run. Raises UsageError if that has none of these values."""
        if self._values is None:
            self._values = self._opened.enter_context(RunValues.opened(self._options))
        measure = self.index["report"]["measures"][number]
        if not other:
            return compressed_chunk({"content": against_each(self._values, measure)})
        with RunValues.opened(replace(self._options, run=other)) as values:
            return compressed_chunk({"content": against_run(self._values, values, measure)})

    @cached_property
    def _parts(self) -> list[Part]:
        """A document with many questions has several parts."""
        questions: dict[int, list[str]] = defaultdict(list)
        for row in self.index["questions"]:
            questions[row["document"]].append(row["question_id"])
        return [
            Part(document["document_id"], tuple(of_document[begin : begin + _OF_A_CHUNK]))
            for document in self.index["documents"]
            for of_document in (questions[document["number"]],)
            for begin in range(0, max(1, len(of_document)), _OF_A_CHUNK)
        ]

    def _batches(self) -> Iterator[list[Part]]:
        """The parts in order, in batches of some _AT_ONCE answers."""
        of_a_question = max(1, self._num_answers)
        ends = accumulate(of_a_question * max(1, len(part.question_ids)) for part in self._parts)
        numbered = zip(ends, self._parts, strict=True)
        for _, batch in groupby(numbered, lambda pair: pair[0] // _AT_ONCE):
            yield [part for _, part in batch]

    def _contents(self, parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
        """The content of each part's chunk, in order; the rows of all parts are read at once."""
        question_ids = [question_id for part in parts for question_id in part.question_ids]
        document_ids = [part.document_id for part in parts]
        self._connection.execute("set variable questions = ?", [question_ids])
        self._connection.execute("set variable documents = ?", [document_ids])
        documents = {key: rows[0] for key, rows in self._grouped(_SQL["documents"]).items()}
        questions = {key: rows[0] for key, rows in self._grouped(_SQL["questions"]).items()}
        page_spans, readings = self._grouped(trace.PAGE_SPANS), self._grouped(trace.READINGS)
        of_documents = self._sections("document_id", document_ids)
        of_questions = self._sections("question_id", question_ids)
        indexing = trace.sent_calls(self._connection, "document_id", document_ids)
        asking = trace.sent_calls(self._connection, "question_id", question_ids)
        for part in parts:
            name = part.document_id
            num_chars = documents[name]["num_chars"]
            document = {
                **documents[name],
                "sections": of_documents[name],
                "calls": indexing[name],
                "page_lanes": {row["memory"]: trace.pages_lane(num_chars, row["spans"])
                               for row in page_spans[name]},
            }  # fmt: skip
            of_part = {
                question_id: {
                    **questions[question_id],
                    "sections": of_questions[question_id],
                    "calls": asking[question_id],
                    "lanes": [
                        {"method": row["method"], "repeat": row["repeat"],
                         **asdict(trace.lane(num_chars, row["spans"] or (),
                                       questions[question_id]["evidence"] or ()))}
                        for row in readings[question_id]
                    ],
                }
                for question_id in part.question_ids
            }  # fmt: skip
            yield with_line_numbers({"document": document, "questions": of_part})

    def _grouped(self, sql: str) -> dict[str, Rows]:
        """Rows by their first column."""
        groups: dict[str, Rows] = defaultdict(list)
        for row in query(self._connection, sql):
            groups[next(iter(row.values()))].append(row)
        return groups

    def _sections(self, key: str, ids: Sequence[str]) -> dict[str, Rows]:
        """The sections of each document (key document_id) or question, in the order of stages."""
        sections = trace.read_sections(self._connection, key, ids, as_drawn=True)
        return {id_: [*map(self._section, of_id)] for id_, of_id in sections.items()}

    def _section(self, section: Section) -> dict[str, Any]:
        """By column, or as the lines of `trace`."""
        record, rows = section.record, section.rows
        step_id = rows[0]["step_id"]
        content: dict[str, Any]
        if record is not None and record.drawn:
            content = {"rows": [{k: v for k, v in r.items() if k not in PLACE} for r in rows]}
        else:
            lines = record.trace_all(rows) if record else map(columns_line, rows)
            content = {"lines": [
                {"lead": line.lead, "text": line.text} if isinstance(line, RawText) else line
                for line in lines
            ]}  # fmt: skip
        return {
            "stage": section.stage,
            "table": section.table,
            "step_id": step_id,
            "upstream": self._upstream[step_id],
            **{name: rows[0][name] for name in ("memory", "method", "repeat") if name in rows[0]},
            **content,
        }


def _index(connection: Any, report: Report, names: Names | None, is_subset: bool) -> dict[str, Any]:
    """The content of the chunk `index`; for a subset only the causes that reached its questions.
    `names` renames headings and memories, but not methods, by which the page finds their rows."""
    printed = named(report, names)
    shown = replace(printed, rows=report.rows)
    documents = query(connection, "from numbered_documents order by number")
    questions = query(connection, "from numbered_questions order by number")
    document_numbers = {row["document_id"]: row["number"] for row in documents}
    question_numbers = {row["question_id"]: row["number"] for row in questions}

    def numbered(numbers: Mapping[str, int], names: Sequence[str] | None) -> list[int]:
        return sorted(numbers[name] for name in names or () if name in numbers)

    problems = [
        {"number": question_numbers[row["question_id"]], "method": row["method"],
         "problem": row["problem"]}
        for row in question_problems(connection)
        if row["question_id"] in question_numbers
    ]  # fmt: skip
    drawn = [(column, points_of(shown, column)) for column in drawn_columns(shown)]
    rows = tuple(row for row in report.rows if row.means or row.counts)
    methods = zip(report.rows, printed.rows, strict=True)
    return {
        "report": asdict(replace(shown, rows=rows)),
        "frontiers": {
            column.measure: frontier_svg(report.run, column.heading, points)
            for column, points in drawn
            if any(point.place for point in points)
        },
        "method_names": {row.method: name.method for row, name in methods},
        "remarks": notes(report),
        "about_best": BEST,
        "foot": provenance_line(report),
        "tones": tones_of(row.method for row in report.rows),
        "groups": {column.measure: group_of(column, report) for column in report.columns},
        "causes": [
            {**cause, "documents": numbered(document_numbers, cause["documents"]),
             "questions": numbered(question_numbers, cause["questions"])}
            for cause in causes(connection, _OF_LISTED if is_subset else "true")
        ],
        "measures": [row["measure"] for row in query(connection, _SQL["measures"])],
        "documents": documents,
        "questions": questions,
        "question_problems": sorted(problems, key=lambda row: row["number"]),
    }  # fmt: skip


def check_page_name(file: Path) -> None:
    """Raise UsageError unless the name ends in .html."""
    if file.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"html={file}: write a name that ends in .html")


def write_page(options: ReadOptions, file: Path) -> dict[str, Any]:
    """Write the page of a run; an older file is replaced once the new one is whole. Raises
    UsageError as `gistmill report` does, and for an unwritable file."""
    check_page_name(file)
    beside = file.with_name(part_name(file.name))
    with closing(Source(options)) as source:
        chunks = source.chunks()
        try:
            page(source.run, [next(chunks)], chunks).dump(str(beside), encoding="utf-8")
            beside.replace(file)
        except OSError as error:
            raise UsageError(f"html={file}: {error.strerror}; write it elsewhere") from None
        finally:
            beside.unlink(missing_ok=True)
        numbers = {key: len(source.index[key]) for key in ("documents", "questions")}
        return {"file": str(file), "run": source.run, **numbers, "bytes": file.stat().st_size}


def written_lines(written: Mapping[str, Any]) -> list[str]:
    about = f"{counted(written['questions'], 'question')} about "
    about += counted(written["documents"], "document")
    return [f"{written['file']}: run {written['run']}, {about}, {written['bytes'] / 1e6:.1f} MB"]


def page(
    run: str, first: Iterable[Chunk] = (), chunks: Iterable[Chunk] = (), root: str | None = None
) -> TemplateStream:
    """The page of a run in pieces. It opens as soon as the chunks `first` are there. A served page
    holds no chunks, but requests its own from data/NAME, and the warehouse's from `root`."""

    def encoded(chunks: Iterable[Chunk]) -> Iterator[tuple[str, str]]:
        return ((name, base64.b64encode(content).decode()) for name, content in chunks)

    script = _inlined('"use strict";\n', _SCRIPTS, "js")
    style = _inlined("", _STYLES, "css")
    connected = "'none'" if root is None else "'self'"
    policy = "; ".join([
        "default-src 'none'", f"script-src {_source(script)}",
        f"style-src {_source(style)}", "img-src data:", f"connect-src {connected}",
        "base-uri 'none'", "form-action 'none'",
    ])  # fmt: skip
    templates = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined
    )
    stream = templates.get_template("page.jinja").stream(
        run=run, policy=policy, root=root,
        script=Markup(script), style=Markup(style),
        first=encoded(first), chunks=encoded(chunks),
    )  # fmt: skip
    stream.enable_buffering(20)
    return stream


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _inlined(head: str, names: Iterable[str], suffix: str) -> str:
    return head + "\n".join((_HERE / f"{name}.{suffix}").read_text("utf-8") for name in names)


def compressed_chunk(chunk: Mapping[str, Any]) -> bytes:
    """Equal chunks give equal bytes."""
    text = json.dumps(json_value(chunk), default=str, allow_nan=False, separators=(",", ":"))
    return gzip.compress(text.encode(), compresslevel=6, mtime=0)


def with_line_numbers(content: Mapping[str, Any]) -> dict[str, Any]:
    """A chunk in which long texts are numbers of lines, with the list of lines: the prompts of a
    document repeat its pages and gists."""
    lines: dict[str, int] = {}
    return {"content": _packed(content, lines), "lines": list(lines)}


def _packed(value: Any, lines: dict[str, int]) -> Any:
    if isinstance(value, str) and len(value) > _LONG:
        return {_LINES: [lines.setdefault(line, len(lines)) for line in value.split("\n")]}
    if isinstance(value, Mapping):
        return {key: _packed(inner, lines) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(inner, lines) for inner in value]
    return value
