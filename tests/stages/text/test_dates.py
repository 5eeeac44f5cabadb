"""The days that texts state."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.text.chat_text import day_of, days_in


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2023/05/30", "2023/05/30"),
        ("2023-05-30", "2023/05/30"),
        ("2023.05.30", "2023/05/30"),
        ("2023/5/3", "2023/05/03"),
        (" 2023/05/30. ", "2023/05/30"),
        ("2023/05/30 (Tue)", "2023/05/30"),
        ("[2023/05/30 (Tue) 21:48]", "2023/05/30"),
        ("2023-05-30T21:48:00Z", "2023/05/30"),
        ("May 30, 2023", "2023/05/30"),
        ("may 3rd 2023", "2023/05/03"),
        ("Tuesday, 30th of May, 2023", "2023/05/30"),
        ("3 Sept. 2023", "2023/09/03"),
        ("on 2023/05/30 at 9:15 p.m.", "2023/05/30"),
        ("2024/02/29", "2024/02/29"),
        ("30/05/2023", "2023/05/30"),
        ("05/30/2023", "2023/05/30"),
        ("05/05/2023", "2023/05/05"),
        # no day, or no one day
        ("", ""), ("N/A", ""), ("unknown", ""), ("2023", ""), ("2023/05", ""), ("May 2023", ""),
        ("May 30", ""), ("05/06/2023", ""), ("5/30/23", ""), ("2023/02/29", ""), ("2023/13/01", ""),
        ("2023/30/05", ""), ("2023/05/00", ""), ("0000/01/01", ""), ("12023/05/30", ""),
        ("2023/05/301", ""), ("2023/05/30/1", ""), ("2023-05/30", ""), ("20230530", ""),
        ("2023/05/01 - 2023/05/03", ""), ("before 2023/05/30", ""), ("around May 30, 2023", ""),
        ("2023/05/30 or so", ""), ("٢٠٢٣/٠٥/٣٠", ""), ("2023/05/30" + " " * 200, ""),
    ],
)  # fmt: skip
def test_the_day_that_a_text_is(text: str, day: str) -> None:
    assert day_of(text) == day


def test_days_within_a_text() -> None:
    text = "From May 3rd, 2023 to 2023-06-01 (maybe 4/5/2023, or in May 2022), then 2023/02/30."
    assert days_in(text) == ["2023/05/03", "2023/06/01"]
    assert days_in("v1.2023.05.30 and 2023/05/30-2023/06/30, maybe 1999") == []


_WAYS = ("%Y/%m/%d", "%Y-%m-%d", "%Y/%m/%d (%a) %H:%M", "%B %d, %Y", "%d %b %Y", "%a, %d %B %Y")


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 200_000), st.sampled_from(_WAYS))
def test_any_day_in_any_of_the_ways(number: int, way: str) -> None:
    day = date(1600, 1, 1) + timedelta(number)
    expected = f"{day.year}/{day.month:02}/{day.day:02}"
    assert day_of(day.strftime(way)) == expected
    assert days_in(f"It was {day.strftime(way)}.") == [expected]


@pytest.mark.slow
@settings(max_examples=2_000, deadline=None)
@given(
    st.text() | st.lists(st.sampled_from([*"2013/-. ,()T:", "May", "Tue", "th", "of"])).map("".join)
)
def test_nothing_raises(text: str) -> None:
    days = days_in(text)
    assert day_of(text) in ("", *days)
