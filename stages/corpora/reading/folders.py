"""Walk a folder of documents: every file in it is a document, or named with the reason why not."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from upath import UPath

from pipeline.files.place import is_remote
from pipeline.store.shards.layout import FILE as WAREHOUSE
from pipeline.store.shards.layout import FOLDERS
from stages.corpora.reading.row_checks import name_of

_MOST_LEFT_OUT = 100  # each is a row; a folder of programs has files by the ten thousand


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder by its path from the folder walked; `wrong`: why it cannot be read;
    `left_out`: why it is not looked at."""

    file: UPath
    name: str
    wrong: str | None = None
    left_out: str | None = None


def walk(folder: UPath, suffixes: Collection[str], without: Collection[str] = ()) -> list[Entry]:
    """The entries of a folder and its sub-folders, by name.

    `suffixes`: of documents, in lower case, with or without `.gz` after them. `without`: names of
    files that are no entries. Hidden files and folders are left out, and so is a link to a folder
    that is read anyway: links in a circle end. A warehouse in a sub-folder is left out; where the
    folder is one itself, its own folders are. Of very many that are left out one entry, the last,
    stands for all but the first.
    """
    walked = _Walk(folder, suffixes, frozenset(without))
    found = sorted(walked.entries(folder, ""), key=lambda entry: name_of(entry.name))
    more = [entry for entry in found if entry.left_out][_MOST_LEFT_OUT:]
    if not more:
        return found
    named = ", ".join(entry.name for entry in more[:3])
    rest = f"{len(more)} more that are left out ({named} ...); move them to be rid of this line"
    left = {entry.name for entry in more}
    return [*(e for e in found if e.name not in left), Entry(folder, "(others)", left_out=rest)]


def is_book(folder: UPath) -> bool:
    """True for an EPUB that is a folder, as some programs keep it, and no archive."""
    if not folder.name.lower().endswith(".epub"):
        return False
    try:
        return any((folder / name).exists() for name in ("mimetype", "META-INF"))
    except OSError:
        return False


def suffix_of(name: str, suffixes: Collection[str]) -> str | None:
    """The one of `suffixes` that a file's name ends with, in any case, before a `.gz`."""
    lower = name.lower().removesuffix(".gz")
    return next((suffix for suffix in suffixes if lower.endswith(suffix)), None)


class _Walk:
    def __init__(self, root: UPath, suffixes: Collection[str], without: Collection[str]) -> None:
        self._suffixes = suffixes
        self._without = without
        self._is_remote = is_remote(root)
        self._root = root if self._is_remote else root.resolve()
        self._linked: set[UPath] = set()  # folders that links have led to

    def entries(self, folder: UPath, prefix: str) -> Iterator[Entry]:
        own = prefix.rstrip("/") or str(folder)
        try:
            found = _listed(folder)
        except OSError as error:
            yield Entry(folder, own, wrong=_wrong(error))
            return
        is_warehouse = any(file.name == WAREHOUSE for file in found)
        if is_warehouse and prefix:
            yield Entry(folder, own, left_out="a warehouse of gistmill; move it elsewhere")
            return
        for file, is_folder in found.items():
            if not (is_warehouse and file.name in FOLDERS):
                yield from self._entry(file, prefix + file.name, is_folder)

    def _entry(self, file: UPath, name: str, is_folder: bool | OSError) -> Iterator[Entry]:
        if file.name.startswith("."):
            yield Entry(file, name, left_out="hidden; rename it to have it read")
        elif isinstance(is_folder, OSError):
            yield Entry(file, name, wrong=_wrong(is_folder))
        elif not is_folder or is_book(file):
            yield from self._file(file, name)
        elif why := self._is_read_elsewhere(file):
            yield Entry(file, name, left_out=why)
        else:
            yield from self.entries(file, f"{name}/")

    def _file(self, file: UPath, name: str) -> Iterator[Entry]:
        if name in self._without:
            return
        if suffix_of(name, self._suffixes):
            yield Entry(file, name)
        elif name == WAREHOUSE:
            wrong = "its folder is a warehouse, whose own folders are not read; name another"
            yield Entry(file, name, left_out=wrong)
        else:
            kinds = " ".join(self._suffixes)
            yield Entry(file, name, left_out=f"none of {kinds}; rename or convert it to be read")

    def _is_read_elsewhere(self, folder: UPath) -> str | None:
        """The reason why a folder is not walked: a link to one that is walked under another name,
        or that holds one that is walked."""
        if self._is_remote or not folder.is_symlink():
            return None
        target = folder.resolve()
        for other in (self._root, *self._linked):
            if target == other or other in target.parents:
                return "a link to a folder that is read under another name; delete it"
            if target in other.parents:
                return f"a link to a folder that holds {other}, which is read; link to its others"
        self._linked.add(target)
        return None


def _listed(folder: UPath) -> dict[UPath, bool | OSError]:
    """The entries of a folder, by name, and whether each is a folder, or why that is not known.

    Raises OSError for a folder that may not be listed, or listed but not entered.
    """
    found = {file: _is_folder(file) for file in sorted(folder.iterdir(), key=lambda f: f.name)}
    errors = [kind for kind in found.values() if isinstance(kind, OSError)]
    if errors and len(errors) == len(found):
        raise errors[0]
    return found


def _is_folder(file: UPath) -> bool | OSError:
    try:
        return file.is_dir()
    except OSError as error:
        return error


def _wrong(error: OSError) -> str:
    return f"{error.strerror}; fix or delete it"
