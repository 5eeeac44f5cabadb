"""The days that texts state."""

import pytest

from stages.text.chat_text import day_of, days_in


@pytest.mark.parametrize(
    ("text", "day"),
    [
        *((text, "2023/05/30") for text in (
            "2023/05/30", "2023-05-30", "2023.05.30", " 2023/05/30. ", "2023/05/30 (Tue)",
            "[2023/05/30 (Tue) 21:48]", "2023-05-30T21:48:00Z", "May 30, 2023", "30/05/2023",
            "Tuesday, 30th of May, 2023", "on 2023/05/30 at 9:15 p.m.", "05/30/2023")),
        ("2023/5/3", "2023/05/03"), ("may 3rd 2023", "2023/05/03"), ("3 Sept. 2023", "2023/09/03"),
        ("2024/02/29", "2024/02/29"), ("05/05/2023", "2023/05/05"),
        # no day, or no one day
        *((text, "") for text in (
            "", "N/A", "unknown", "2023", "2023/05", "May 2023", "May 30", "05/06/2023", "5/30/23",
            "2023/02/29", "2023/13/01", "2023/30/05", "2023/05/00", "0000/01/01", "12023/05/30",
            "2023/05/301", "2023/05/30/1", "2023-05/30", "20230530", "2023/05/01 - 2023/05/03",
            "before 2023/05/30", "around May 30, 2023", "2023/05/30 or so", "٢٠٢٣/٠٥/٣٠",
            "2023/05/30" + " " * 200)),
    ],
)  # fmt: skip
def test_the_day_that_a_text_is(text: str, day: str) -> None:
    assert day_of(text) == day


def test_days_within_a_text() -> None:
    text = "From May 3rd, 2023 to 2023-06-01 (maybe 4/5/2023, or in May 2022), then 2023/02/30."
    assert days_in(text) == ["2023/05/03", "2023/06/01"]
    assert days_in("v1.2023.05.30 and 2023/05/30-2023/06/30, maybe 1999") == []
