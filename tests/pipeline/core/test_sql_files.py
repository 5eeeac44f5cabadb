"""SQL in files: sections by name, what is filled in, and mistakes in one line."""

from pathlib import Path

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.sql_files import filled, sql_beside, sql_sections

FILE = """-- About the whole file.

-- name: first
-- What it is.
select 1 as n
where n = 1;

-- name: second
select {'a': 1};

-- a comment at its end
"""


def test_sections_by_name(tmp_path: Path) -> None:
    (tmp_path / "rows.sql").write_text(FILE)
    first = "-- What it is.\nselect 1 as n\nwhere n = 1"
    assert sql_beside(str(tmp_path / "rows.py")) == {"first": first, "second": "select {'a': 1}"}


def test_fields_are_filled_once() -> None:
    """A value that looks like a field, such as of a user's condition, stays as it is."""
    sql = "select {'a': {value}}, {other} from {source}"
    assert filled(sql, value="{source}", source="t") == "select {'a': {source}}, {other} from t"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"select 1;\n-- name: a\nselect 2;\n", "SQL before the first section"),
        (b"-- name: a\n-- nothing\n\n-- name: b\nselect 1\n", "section 'a': no SQL"),
        (b"-- name: a\nselect 1;\n-- name: a\nselect 2\n", "section 'a': twice"),
        (b"-- name: a\nselect '\xe4'\n", "byte 19 is no UTF-8"),
    ],
)
def test_mistakes_name_file_and_section(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "rows.sql"
    file.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        sql_sections(file)
    assert str(refused.value).startswith(f"{file}: {told}")
