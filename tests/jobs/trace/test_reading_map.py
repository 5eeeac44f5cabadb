"""The lanes of a reading map against spans counted by hand."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import gistmill
from jobs.trace.trace import lane, pages_lane
from tests.support.runs.page_run import finished, write_corpus

SVG = "{http://www.w3.org/2000/svg}"


def spans(*pairs: tuple[int, int]) -> list[dict[str, int]]:
    return [{"start_char": start, "end_char": end} for start, end in pairs]


def test_what_overlaps_or_touches_counts_once() -> None:
    made = lane(1000, spans((100, 200), (0, 50), (150, 300), (300, 310)), spans((40, 110)))
    assert made.read == 26.0, "0-50 and 100-310"
    assert made.gold == pytest.approx(100 * 20 / 70, abs=0.05), "40-50 and 100-110 of 40-110"
    paths = ElementTree.fromstring(made.svg).iter(f"{SVG}path")
    assert {path.get("class"): path.get("d") for path in paths} == {
        "gold": "M40 0h70v20H40z", "read": "M0 0h50v20H0zM100 0h210v20H100z"
    }  # fmt: skip


def test_the_share_of_each_passage_counts_what_overlaps_once() -> None:
    made = lane(1000, spans((0, 50), (20, 60)), spans((0, 100), (50, 70), (500, 510), (5, 5)))
    assert made.passages == (60.0, 50.0, 0.0, 0.0), "0-60 was read"
    assert made.gold == pytest.approx(100 * 60 / 110, abs=0.05), "of 0-100 and 500-510"


def test_pages_stand_where_they_are() -> None:
    pages = [{"page_index": n, "start_char": 10 * n, "end_char": 10 * n + 10} for n in range(3)]
    made = ElementTree.fromstring(pages_lane(30, pages))
    rectangles = [(r.get("data-page"), r.get("x"), r.get("width")) for r in made.iter(f"{SVG}rect")]
    assert rectangles == [("0", "0", "10"), ("1", "10", "10"), ("2", "20", "10")]


def test_a_notebook_shows_names_as_text_and_mistakes_are_said(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus", 1)
    warehouse = finished(tmp_path, "engine=extractive", methods="bm25(top_k=1),full_text")
    shown = gistmill.reading_map("v0-m3", warehouse)._repr_html_()
    heads = re.findall('<th scope="row">(.*?)</th>', shown)
    assert heads == ["pages of shared", "bm25(top_k=1)", "full_text"]
    assert "read 100.0%, evidence 100.0%" in shown
    with pytest.raises(gistmill.UsageError, match="v0-m4: no such question in the run; nearest: "):
        gistmill.reading_map("v0-m4", warehouse)
