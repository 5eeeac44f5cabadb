"""Tables in LaTeX: how wide they are, and how a wide one is split. That they are as wide as LaTeX
makes them is in test_latex_compiled.py."""

from collections.abc import Mapping

import pytest

from jobs.output.cells import Marks, Measured, Table
from jobs.output.latex import fitted, latex, points
from jobs.output.latex_text import ems

NUMBERS = {"A": "Scores", "B": "Scores", "C": "Reading", "D": "Cost"}


def measured(value: float, is_best: bool = False, n: int = 9, small: str = "") -> Measured:
    return Measured(value, n, 9, is_best, small)


def table(
    name: str = "m", marks: Marks = "bold", more: Mapping[str, Measured] | None = None
) -> Table:
    rows = [
        {"Method": name, "n": 9, **{key: measured(10.0 + i) for key in NUMBERS}} for i in (0, 1)
    ]
    return Table(
        [{**row, **(more or {})} for row in rows], num_keys=2, groups=NUMBERS, caption="All of it",
        label="tab:x", marks=marks,
    )  # fmt: skip


def test_a_width_is_the_sum_of_the_signs() -> None:
    """In cmr9's ems: a digit has 0.514, a period 0.285, a capital M 0.942, a space 0.343."""
    assert ems("12.5") == pytest.approx(3 * 0.514 + 0.285, rel=0.03)
    assert ems("M M") == pytest.approx(2 * 0.942 + 0.343, rel=0.13)
    assert ems("12.5") >= 3 * 0.514 + 0.285 and ems("M M") >= 2 * 0.942 + 0.343
    assert ems("é") < 1 < ems("检")


def test_a_table_that_fits_is_one() -> None:
    """Its columns have 1 sign, 1 sign and four times 4 signs: 18 signs and 5 gaps are below 200
    points, at 4 to 9 points a sign and 8 points a gap."""
    made = table()
    assert fitted(made) == [made]
    assert 18 * 4 + 5 * 8 < points(made) < 18 * 9 + 5 * 8 + 20
    text = latex([made])
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
    assert r"\caption{All of it}" in text and r"\label{tab:x}" in text
    assert r"\begin{tabular}{@{}lrrrrr@{}}" in text


def captions(parts: list[Table]) -> list[tuple[str, str, str, list[str]]]:
    return [(part.caption, part.label, part.part_of, part.names()[2:]) for part in parts]


def test_one_that_is_wider_is_split_by_groups() -> None:
    made = table()
    parts = fitted(made, points(made) - 1)
    assert captions(parts) == [
        ("Scores: All of it", "tab:x", "", ["A", "B"]),
        ("Reading", "tab:x-reading", "tab:x", ["C"]),
        ("Cost", "tab:x-cost", "tab:x", ["D"]),
    ]
    assert all(part.names()[:2] == ["Method", "n"] for part in parts)
    assert r"\caption{Reading; see Table~\ref{tab:x}.}" in latex(parts)
    assert fitted(made, points(made) + 1) == [made]


def test_a_group_that_is_still_wider_is_continued() -> None:
    made = table()
    for_one = points(Table(made.rows, num_keys=2)) / 2
    assert captions(fitted(made, for_one))[:2] == [
        ("Scores: All of it", "tab:x", "", ["A"]),
        ("Scores, continued", "tab:x-scores2", "tab:x", ["B"]),
    ]


def test_a_long_name_is_wrapped_where_it_may_be_broken() -> None:
    name = "truncated(keep=first,num_words=6000) of a very long name " + "x" * 80
    made = table(name)
    (part, *_) = fitted(made)
    assert points(part) <= 345
    text = latex([part])
    assert r"\begin{tabular}{@{}p{19.6em}rrrrr@{}}" in text, "0.55 of 345 points / 9.69 a em"
    assert r"\raggedright truncated(keep=first,num\_words=6000) of a very" in text
    assert r"x\allowbreak{}x" in text


def row_of(made: Table) -> str:
    """The last row of values."""
    return [line for line in latex([made]).splitlines() if line.endswith(r" \\")][-1]


def test_marks_of_the_best() -> None:
    best = {"A": measured(11.0, is_best=True)}
    assert row_of(table(more=best)) == r"m & 9 & \textbf{11.0} & 11.0 & 11.0 & 11.0 \\"
    assert row_of(table(marks="stars", more=best)) == (
        r"m & 9 & 11.0$^{*}$ & 11.0 & 11.0 & 11.0 \\"
    )
    assert row_of(table(marks="none", more=best)) == r"m & 9 & 11.0 & 11.0 & 11.0 & 11.0 \\"


def test_beside_a_star_others_have_its_room() -> None:
    made = table(marks="stars")
    first, second = made.rows
    rows = [first, {**second, "A": measured(11.0, is_best=True)}]
    lines = latex([Table(rows, num_keys=2, marks="stars")]).splitlines()
    assert any(r"10.0\phantom{$^{*}$} & 10.0 &" in line for line in lines)


def test_headings_are_cut_at_spaces_where_they_widen_a_column() -> None:
    rows = [{"Method": "m", "words read": measured(5.0), "# LU": measured(1.0), "n": 9}]
    text = latex([Table(rows)])
    assert r"\begin{tabular}[b]{@{}r@{}}words\\read\end{tabular} & \# LU & $n$ \\" in text


def test_intervals_are_small_and_count() -> None:
    wide = table(more={"A": measured(11.0, small="[10.0, 12.0]")})
    assert r"11.0 {\scriptsize[10.0, 12.0]}" in latex([wide])
    assert points(wide) > points(table()) + 30
