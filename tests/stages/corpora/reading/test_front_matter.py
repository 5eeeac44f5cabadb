"""The front matter of Markdown."""

from datetime import date

import pytest

from stages.corpora.reading.document_files import without_front_matter
from stages.extract.extracted import Extracted


def test_it_is_the_metadata() -> None:
    text = "---\ntitle: The Tower\ntags: [oil, sea]\ndate: 1893-05-01\n1: x\n---\n\n# Tower\n"
    assert without_front_matter(text) == Extracted(
        "# Tower\n",
        metadata={"title": "The Tower", "tags": ["oil", "sea"], "date": date(1893, 5, 1), "1": "x"},
    )
    assert without_front_matter("---\na: 1\n...\nText").metadata == {"a": 1}
    assert without_front_matter("---\na: 1\n---") == Extracted("", metadata={"a": 1})


def test_it_is_json_whatever_its_keys_and_numbers_are() -> None:
    text = "---\nhistory:\n  2024-01-01: [{1: .nan}]\nweight: -.inf\n---\nText"
    found = without_front_matter(text)
    assert found == Extracted(
        "Text", metadata={"history": {"2024-01-01": [{"1": "nan"}]}, "weight": "-inf"}
    )


@pytest.mark.parametrize(
    "text",
    [
        "# Tower\n",
        "---\nA line between rules.\n---\nText",
        "---\na: [\n---\nText",
        "---\na: 1\nand no end",
        "Text\n---\na: 1\n---\n",
        "---\na: &a [x]\nb: [*a, *a]\n---\nText",  # what is repeated unfolds to any size
        "---\n- a\n---\nText",
        "---\na: " + "[" * 5000 + "]" * 5000 + "\n---\nText",
        "---\na: !!python/object:os.system x\n---\nText",
        "---\n" + "a: 1\n" * 20_000 + "---\nText",
        "---\n---\nText",
    ],
)
def test_what_is_none(text: str) -> None:
    assert without_front_matter(text) == Extracted(text)
