"""Output of `gistmill report --html` and `gistmill view`."""

import dataclasses
import sys
from pathlib import Path

from jobs.config.options import ReadOptions
from jobs.html.page_file import write_page
from jobs.html.serve import serve
from jobs.html.source import Source
from jobs.output.cells import counted
from jobs.output.print_tables import print_json, print_line

_LARGE = 200e6  # bytes that a browser takes a while to read


def show_written(options: ReadOptions, file: Path, as_json: bool) -> None:
    """Write a page, and print the counts of its contents."""
    made = write_page(options, file)
    if as_json:
        print_json(dataclasses.asdict(made))
        return
    print_line(
        f"{made.file}: run {made.run}, {counted(made.questions, 'question')} about "
        f"{counted(made.documents, 'document')}, {made.bytes / 1e6:.1f} MB"
    )
    if made.bytes > _LARGE:
        print_line("a large file; gistmill view shows the same and reads what is opened")


def show_served(options: ReadOptions, as_json: bool) -> None:
    """Serve a page until Ctrl-C, and print its address."""

    def started(address: str, source: Source) -> None:
        if as_json:
            print_json({"address": address, "run": source.run})
        else:
            print_line(f"run {source.run}: {address} (Ctrl-C ends it)")
        sys.stdout.flush()

    serve(options, started)
