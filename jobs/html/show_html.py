"""Output of `gistmill report --html` and `gistmill view`."""

import sys
from pathlib import Path

from jobs.config.options import ReadOptions
from jobs.html.bundle import Bundle, write_bundle
from jobs.html.page_file import Written, write_page
from jobs.html.serve import serve
from jobs.output.cells import counted
from jobs.output.print_tables import print_found

_LARGE = 200e6  # bytes that a browser takes a while to read
_ADVICE = "a large file; gistmill view shows the same and reads what is opened"


def show_written(options: ReadOptions, file: Path, as_json: bool) -> None:
    """Write a page, and print the counts of its contents."""
    print_found(write_page(options, file), _lines, as_json)


def _lines(made: Written) -> list[str]:
    line = (
        f"{made.file}: run {made.run}, {counted(made.questions, 'question')} about "
        f"{counted(made.documents, 'document')}, {made.bytes / 1e6:.1f} MB"
    )
    return [line] if made.bytes <= _LARGE else [f"{line}\n{_ADVICE}"]


def show_served(options: ReadOptions, as_json: bool) -> None:
    """Serve the pages until Ctrl-C, and print the address of the chosen run's."""

    def started(address: str, run: str) -> None:
        found = {"address": address, "run": run}
        print_found(found, lambda _: [f"run {run}: {address} (Ctrl-C ends it)"], as_json)
        sys.stdout.flush()

    serve(options, started)


def show_bundle(options: ReadOptions, folder: Path, as_json: bool) -> None:
    """Write the pages of all runs into a folder, and print what is in it."""
    print_found(write_bundle(options, folder), _bundle_lines, as_json)


def _bundle_lines(made: Bundle) -> list[str]:
    size = f"{counted(len(made.runs), 'run')}, {made.bytes / 1e6:.1f} MB"
    how = f"a web server shows them, such as python -m http.server -d {made.folder}"
    left_out = [f"left out {run}: {why}" for run, why in made.left_out.items()]
    return ["\n".join([f"{made.folder}: {size}; {how}", *left_out])]
