"""`gistmill trace`: print a trace as text; record classes format their rows."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from textwrap import indent, shorten
from typing import Any

from jobs.config.options import ReadOptions
from jobs.output.print_tables import print_json, print_line
from jobs.trace.sent_lines import sent_lines
from jobs.trace.trace import Section, trace
from pipeline.core.plugins import load_plugins, plugin_folders
from pipeline.core.trace_lines import Line, RawText, columns_line, titled
from pipeline.store.sql.memory_names import SHARED

_TEXT_CHARS = 400  # of a page's text and the like; --full prints all of it


def show_trace(
    options: ReadOptions, question_id: str, full: bool, prompts: bool, as_json: bool
) -> None:
    """Print the trace of a question; the document's texts are cut to a few lines unless `full`.
    With `prompts` also every call, as it was sent."""
    load_plugins(plugin_folders(options.plugins))
    found = trace(options, question_id, prompts)
    if as_json:
        print_json(found.as_json())
        return
    _show_question(found.question)
    for memory, sections in found.memories.items():
        if memory != SHARED:
            print_line(f"\nMEMORY {memory}")
        _show_memory(sections, full)
        _print(sent_lines(found.made(memory)), full)
    if not found.methods:
        print_line("\nno method has answered it")
    has_repeats = any(repeat for _, repeat in found.methods)
    for (method, repeat), sections in found.methods.items():
        print_line(f"\n== {method}" + (f" (repeat {repeat})" if has_repeats else ""))
        for section in sections:
            _print(_lines(section), full, "  ")
        _print(sent_lines(found.asked(method, repeat)), full, "  ")


def _show_question(question: dict[str, Any]) -> None:
    print_line(f"QUESTION {question['question_id']} of document {question['document_id']}")
    print_line(f"  {question['question']}")
    if question["problem"]:
        print_line(f"  problem: {question['problem']} {question['detail'] or ''}".rstrip())
    for index, option in enumerate(question["options"]):
        right = " <- right" if index == question["answer_index"] else ""
        print_line(f"  ({chr(65 + index)}) {option}{right}")
    for reference in question["references"]:
        print_line(f"  reference: {reference}")
    for text in question["evidence_texts"]:
        print_line(f"  evidence: {shorten(text, _TEXT_CHARS)}")


def _show_memory(sections: Sequence[Section], full: bool) -> None:
    """Print each step's rows under a heading, except those that other rows show (`shows`)."""
    shown = {other for section in sections if section.record for other in section.record.shows}
    for section in sections:
        if section.record in shown:
            continue
        for _, rows in groupby(section.rows, lambda row: row["step_id"]):
            if lines := _lines_of_memory(section, list(rows)):
                print_line()
                _print(lines, full)


def _lines_of_memory(section: Section, rows: list[dict[str, Any]]) -> Sequence[Line]:
    if section.record is not None:
        return section.record.trace_all(rows)
    title = f"{section.table.upper()} ({len(rows)} rows)"
    return titled(title, rows, lambda row: [columns_line(row)])


def _lines(section: Section) -> Sequence[Line]:
    if section.record is not None:
        return section.record.trace_all(section.rows)
    return [f"{section.stage}: {columns_line(row)}" for row in section.rows]


def _print(lines: Iterable[Line], full: bool, margin: str = "") -> None:
    for line in lines:
        if isinstance(line, RawText):
            line = line.lead + (line.text if full else shorten(line.text, _TEXT_CHARS))
        print_line(indent(line, margin))
