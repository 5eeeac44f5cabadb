"""Find a corpus's files and read their rows in order, whatever the type of file."""

from collections.abc import Iterator, Sequence

from upath import UPath

from pipeline.core.errors import UsageError
from stages.corpora.reading.containers import read_rows
from stages.corpora.reading.corpus_row import Row
from stages.corpora.reading.opening import refuse_no_file


def files_of(path: UPath, *patterns: str) -> list[UPath]:
    """Return `path` itself if it is a file, else the matching files in the folder, sorted by name;
    where there are none, those in its `data`, as in most datasets of Hugging Face.

    Raises UsageError where no file matches.
    """
    if not path.is_dir():
        return [path]
    either = [name for pattern in patterns for name in (pattern, f"{pattern}.gz")]
    for folder in (path, path / "data"):
        found = {file for pattern in either for file in folder.glob(pattern) if not file.is_dir()}
        if found:
            return sorted(found)
    raise UsageError(f"{path}: no {' or '.join(patterns)} in this folder; set corpus.path=...")


def is_there(file: UPath) -> bool:
    """True if the file exists. Raises UsageError where it is anything but a file."""
    if not file.exists():
        return False
    refuse_no_file(file, "remove it or set corpus.path=...")
    return True


def one_of(folder: UPath, name: str, *suffixes: str) -> UPath | None:
    """The file of that name with one of the suffixes; None without one. Raises UsageError where
    there are two."""
    found = [path for end in suffixes if is_there(path := folder / f"{name}.{end}")]
    if len(found) > 1:
        raise UsageError(f"{folder}: both {found[0].name} and {found[1].name}; keep one")
    return found[0] if found else None


def split_of(path: UPath, split: str | None, *suffixes: str) -> UPath:
    """Return the file or subfolder named after the split; `path` itself where `split` is None.

    Raises UsageError where the folder has neither.
    """
    if split is None:
        return path
    names = [split, *(f"{split}.{suffix}" for suffix in suffixes)]
    for name in names:
        if (path / name).exists():
            return path / name
    raise UsageError(f"{path}: no {' or '.join(names)} here; set corpus.path or corpus.split")


def rows_of(files: Sequence[UPath]) -> Iterator[Row]:
    """Yield the rows of the files, in order; file types are those of containers.py.

    Raises UsageError, before the first row, where no row of any file is a JSON object.
    """
    unreadable: list[Row] = []
    usable = False
    for file in files:
        for row in read_rows(file):
            usable = usable or row.value is not None
            unreadable.append(row)
            if usable:
                yield from unreadable
                unreadable.clear()
    if not usable:
        where = files[0] if len(files) == 1 else files[0].parent
        first = unreadable[0].detail(unreadable[0].wrong) if unreadable else "set corpus.path=..."
        raise UsageError(f"{where}: no line or row in it is an object; {first}")
