"""Labels that people gave to answers of a run: runs/<name>/people/<person>.parquet, and the view
`people` of them.

They are kept apart from the rows that stages make: no step plans them, and no run redoes them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
from upath import UPath

from pipeline.core.errors import DamagedError
from pipeline.files.parquet import parquet_content, read_parquet
from pipeline.files.storage import exists, list_paths, read, write
from pipeline.store.shards.damaged_files import DamagedFiles, check_table

PEOPLE = pa.schema(
    [
        ("rater", pa.string()),  # human:NAME
        ("method", pa.string()),
        ("repeat", pa.int64()),
        ("document_id", pa.string()),
        ("question_id", pa.string()),
        ("answer_sha", pa.string()),  # sha256 of the answer's text, as it was
        ("label", pa.string()),
        ("comment", pa.string()),
    ]
)
ALL_PEOPLE = pa.schema([("run", pa.string()), *PEOPLE])  # of all runs of a warehouse
_KEY = ("method", "repeat", "document_id", "question_id", "answer_sha")


def add_labels(run: UPath, person: str, labels: Sequence[Mapping[str, Any]]) -> int:
    """Add a person's labels to those of earlier imports into a run's folder; a label of the same
    answer is replaced. Returns the number of new or changed labels; nothing is written if there are
    none.

    Raises DamagedError, StorageError.
    """
    file = run / "people" / f"{person}.parquet"
    before = {_key(row): row for row in _rows(file)} if exists(file) else {}
    of_person = {**dict.fromkeys(PEOPLE.names), "rater": f"human:{person}"}
    rows = [of_person | dict(label) for label in labels]
    changed = {_key(row): row for row in rows if before.get(_key(row)) != row}
    if changed:
        table = pa.Table.from_pylist(list((before | changed).values()), schema=PEOPLE)
        write(file, parquet_content(PEOPLE, [table]))
    return len(changed)


def num_labels(run: UPath) -> int:
    """The number of labels in a run's folder; those of damaged files are not counted."""
    count = 0
    for file in list_paths(run, "people/*.parquet"):
        with suppress(DamagedError):
            count += len(_rows(file))
    return count


def people_rows(folder: UPath, left_out: DamagedFiles) -> list[dict[str, Any]]:
    """The labels of all runs of a warehouse, as rows of ALL_PEOPLE."""
    none: list[dict[str, Any]] = []
    return [
        {"run": file.parent.parent.name} | row
        for file in sorted(list_paths(folder / "runs", "*/people/*.parquet"))
        for row in left_out.unless_damaged(partial(_rows, file), none)
    ]


def _rows(file: UPath) -> list[dict[str, Any]]:
    check_table(file, PEOPLE, "import the sheet again")
    rows: list[dict[str, Any]] = read_parquet(read(file), PEOPLE.names).cast(PEOPLE).to_pylist()
    return rows


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KEY)
