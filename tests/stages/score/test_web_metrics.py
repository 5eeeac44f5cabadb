"""Mind2Web's metrics, worked by hand."""

import pytest

from stages.score.web_metrics import element_accuracy, operation_f1, step_success
from stages.text.web_actions import WebAction, parse_action

GOLD = "Element: 12\nOperation: TYPE\nValue: two adults"


@pytest.mark.parametrize(
    ("reply", "element", "f1", "step"),
    [
        (GOLD, 100, 100, 100),
        ("Element: 12\nOperation: CLICK", 100, 0, 0),
        ("Element: 12\nOperation: TYPE\nValue: adults", 100, 80, 0),  # 2 of 2 and of 3 words
        ("Element: 13\nOperation: TYPE\nValue: adults two", 0, 100, 0),  # sets of words
        ('**Element:** 12\n- Operation: `type`\nvalue: "two adults"', 100, 100, 100),
        ("Element: 9\nNo, wait.\nElement: 12\nOperation: TYPE", 100, 50, 0),
        ("I would click the button.", 0, 0, 0),
        ("", 0, 0, 0),
    ],
)
def test_by_hand(reply: str, element: float, f1: float, step: float) -> None:
    assert element_accuracy(reply, GOLD) == element
    assert operation_f1(reply, GOLD) == pytest.approx(f1)
    assert step_success(reply, GOLD) == step


@pytest.mark.parametrize("reply", ["Element: none\nOperation: CLICK", "Element:\nOperation: CLICK"])
def test_an_action_without_an_element_fails_whatever_is_said(reply: str) -> None:
    gold = str(WebAction("", "CLICK", ""))
    assert parse_action(gold) == WebAction("", "CLICK", "")
    assert [metric(reply, gold) for metric in (element_accuracy, operation_f1, step_success)] == [
        0, 0, 0,
    ]  # fmt: skip


def test_what_is_written_is_read() -> None:
    for action in (WebAction("12", "TYPE", "two adults"), WebAction("7", "CLICK", "")):
        assert parse_action(str(action)) == action
