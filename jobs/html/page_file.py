"""`gistmill report --html FILE`: the page of a run in one file that needs nothing else."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import track

from jobs.config.options import ReadOptions
from jobs.html.run_page import page
from jobs.html.source import Source
from jobs.output.cells import counted
from jobs.output.print_tables import print_found
from pipeline.core.errors import UsageError
from pipeline.files.storage import as_path, delete_abandoned, part_name

_LARGE = 200e6  # bytes that a browser takes a while to read
_ADVICE = "a large file; gistmill view shows the same and reads what is opened"


@dataclass(frozen=True)
class Written:
    file: str
    run: str
    documents: int
    questions: int
    bytes: int


def check_page_name(file: Path) -> None:
    """Raise UsageError unless the name ends in .html and its folder exists."""
    if file.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--html {file}: not a name that ends in .html; write --html FILE.html")
    if not file.parent.is_dir():
        raise UsageError(f"--html {file}: no folder {file.parent}; write it elsewhere")


def write_page(options: ReadOptions, file: Path) -> Written:
    """Write the page of a run, with a progress bar in a terminal; an older file of the name is
    replaced once the new one is whole.

    Raises UsageError as `gistmill report` does, and if the file cannot be written or has another
    ending.
    """
    check_page_name(file)
    delete_abandoned(as_path(file))
    beside = file.with_name(part_name(file.name))
    console = Console(stderr=True, no_color=True)
    with closing(Source(options)) as source:
        chunks = track(
            source.chunks(), f"writing {escape(file.name)}", source.num_chunks,
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        made = page(source.run, [source.first(is_served=False)], chunks)
        try:
            made.dump(str(beside), encoding="utf-8")
            beside.replace(file)
        except OSError as error:
            raise UsageError(f"--html {file}: {error.strerror}; write it elsewhere") from None
        finally:
            beside.unlink(missing_ok=True)
        num_bytes = file.stat().st_size
        return Written(str(file), source.run, source.num_documents, source.num_questions, num_bytes)


def show_written(options: ReadOptions, file: Path, as_json: bool) -> None:
    print_found(write_page(options, file), _lines, as_json)


def _lines(made: Written) -> list[str]:
    line = (
        f"{made.file}: run {made.run}, {counted(made.questions, 'question')} about "
        f"{counted(made.documents, 'document')}, {made.bytes / 1e6:.1f} MB"
    )
    return [line] if made.bytes <= _LARGE else [f"{line}\n{_ADVICE}"]
