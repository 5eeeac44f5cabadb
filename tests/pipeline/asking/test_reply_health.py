"""Findings about replies where whole runs (tests/jobs/report/test_findings.py) show none."""

from typing import Any

import pytest

from pipeline.asking.reply_health import findings

ROW: dict[str, Any] = {
    "stage": "answer", "method": "bm25", "repeat": 0, "prompt": "answer", "replies": 100,
    "unread": 0, "illegal": 0, "truncated": 0, "commonest": "no", "commonest_share": 0.1,
    "example_share": 0.0, "choices": 0, "letters": None, "right_letters": None,
    "copied_share": None, "tiny_share": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, []),
        ({"unread": 20, "illegal": 11}, ["unread"]),
        ({"prompt": "gist", "commonest_share": 0.71}, ["commonest"]),
        # Nineteen equal replies, and verdicts of three words, may be right.
        ({"prompt": "gist", "commonest_share": 1.0, "replies": 19}, []),
        ({"prompt": "starts_chapter", "commonest_share": 1.0}, []),
        ({"prompt": "rate_permissive", "commonest_share": 1.0}, []),
        # One of four letters is an example's by chance, one of many labels is not.
        ({"example_share": 0.44}, []),
        ({"example_share": 0.46}, ["example"]),
        ({"prompt": "break_point", "example_share": 0.21}, ["example"]),
        (
            {"choices": 10, "letters": {"A": 0.8, "B": 0.2}, "right_letters": {"A": 0.7}},
            ["letters"],
        ),
        ({"choices": 10, "letters": {"A": 0.8, "B": 0.2}, "right_letters": {"A": 0.75}}, []),
        ({"choices": 9, "letters": {"A": 1.0}, "right_letters": {"B": 1.0}}, []),
        ({"prompt": None, "replies": 0, "choices": 10, "letters": {"A": 1.0}}, ["letters"]),
        ({"copied_share": 0.51, "tiny_share": 0.11}, ["copies", "tiny"]),
        ({"prompt": "of_a_plugin", "commonest_share": 0.71}, ["commonest"]),
    ],
)
def test_bounds(changes: dict[str, Any], names: list[str]) -> None:
    assert [*findings({**ROW, **changes}, may_constrain=False)] == names


@pytest.mark.parametrize(
    ("prompt", "may_constrain", "is_advised"),
    [("break_point", True, True), ("break_point", False, False), ("extract_facts", True, False)],
)
def test_constrained_replies_are_advised_where_they_help(
    prompt: str, may_constrain: bool, is_advised: bool
) -> None:
    line = findings({**ROW, "prompt": prompt, "unread": 90}, may_constrain)["unread"]
    assert ("reply_format=constrained" in line) == is_advised
