"""Shared by the two prompts that navigate a tree: their actions, how a reply names one, and the
constraint of reasoning before it (MemWalker section 3 and appendix A.1.2).

An action is a number: of a child of an inner node, from 0; -1 reverts to the parent; -2 answers.
"""

import re

from pipeline.core.prompts import Constraint
from pipeline.core.reply_forms import plain_text
from stages.prompts.parsing.replies import is_hedged, matching, settled

REVERT, ANSWER = -1, -2
MAX_REPLIES = 3  # so many in a row without a legal action end the navigation (section 3)
EXPECTED_REASON = f"Reasoning: {' '.join(['reason'] * 60)}\n"
_REASON_CHARS = 450  # of a constrained reply: at a token each the action still fits the budget
_NUMBER = r"(?P<action>[-−–]?\s?\d{1,9})(?![\d.]*\d)"
_NO_OTHER = (
    r"(?!\s*(?:/|,(?:\s*then\b)?|&|\bor\b|\band\b)\s*[-−–]?\d)"  # "Action: 0 / 1" repeats the form
)
_ACTION = (
    r"\baction\s*(?:[:=]|is\b)\s*(?:[\[(<{]\s*)?(?:(?:summary|passage|part|number)\s*)*"
    rf"{_NUMBER}{_NO_OTHER}"
)
_SIGNS = r"^\W{0,20}"  # bounded: each line of a reply of blank lines would be searched to its end
_LINE = re.compile(rf"{_SIGNS}{_ACTION}", re.IGNORECASE | re.MULTILINE)
_ANYWHERE = re.compile(_ACTION, re.IGNORECASE)
_ALONE = re.compile(rf"\A(?:\W{{0,9}}(?i:action)\s+)?\W*?{_NUMBER}\W*\Z")
_STATED = re.compile(rf"{_SIGNS}action\b", re.IGNORECASE | re.MULTILINE)
_LABEL = re.compile(r"\A\W*reasoning\W*:\W*", re.IGNORECASE)


def parse_action(reply: str, is_cut: bool) -> int | None:
    """The action: of a line `Action: 3`, else stated within one, else a number that is all there
    is. None where two differ, or where the reply may have been cut within the number."""
    text = plain_text(reply)
    lines = list(_LINE.finditer(text))
    stated = [found for found in _ANYWHERE.finditer(text) if not is_hedged(text, found)]
    alone = list(_ALONE.finditer(text))
    readings = [
        [_value(f) for f in some if not (is_cut and f.end("action") == len(text))]
        for some in (lines, [] if is_cut else stated, alone)
    ]
    return settled(*readings)


def _value(found: re.Match[str]) -> int:
    return int(re.sub(r"[−–]", "-", re.sub(r"\s", "", found["action"])))


def reason_of(reply: str) -> str | None:
    """The reasoning of a reply before its action, without its label; None where it says nothing."""
    found = _STATED.search(reply)
    before = reply[: found.start()] if found else ""
    return _LABEL.sub("", before).strip() or None


def legal_actions(form: str, actions: str, reasoning: bool) -> Constraint:
    """Replies in this form with one of the actions, a regex, after one line of free reasoning."""
    reason = f"Reasoning: [^\\n]{{1,{_REASON_CHARS}}}\\n" if reasoning else ""
    return Constraint(regex=f"{reason}{matching(form, f'({actions})')}")
