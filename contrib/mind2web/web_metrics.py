"""Actions on a web page as lines of text, and Mind2Web's metrics for one (arXiv 2306.06070,
section 4.1; OSU-NLP-Group/Mind2Web, action_prediction/metric.py): the element, the operation
with its value, and both. All are 0 where the reference has no element. Means are over episodes."""

import re
from dataclasses import dataclass

from gistmill.plugin import metric

_LINE = re.compile(
    r"^\W*(element|operation|value)\W*?[:：][ \t]*(.*)$", re.IGNORECASE | re.MULTILINE
)
_NUMBER = re.compile(r"\w+")
_EPISODE = ("annotation_id",)  # in the metadata of questions, as mind2web.py writes it


@dataclass(frozen=True, slots=True)
class WebAction:
    """`element`: its backend_node_id; `operation`: CLICK, TYPE or SELECT; `value`: "" for none."""

    element: str
    operation: str
    value: str

    def __str__(self) -> str:
        value = f"\nValue: {self.value}" if self.value else ""
        return f"Element: {self.element}\nOperation: {self.operation}{value}"


def parse_action(text: str) -> WebAction:
    """The action that a text states; the last line of each kind counts, "" where there is none."""
    found = {name.lower(): said.strip().strip("*`\"'") for name, said in _LINE.findall(text)}
    element = _NUMBER.search(found.get("element", ""))
    operation = _NUMBER.search(found.get("operation", ""))
    return WebAction(
        element[0] if element else "", operation[0].upper() if operation else "",
        found.get("value", ""),
    )  # fmt: skip


@metric("mind2web_element", groups=_EPISODE, version=1)
def element_accuracy(answer: str, reference: str) -> float:
    """100 where the element is one of those that count as right (Mind2Web), else 0."""
    made, wanted = parse_action(answer), parse_action(reference)
    return 100.0 * (bool(made.element) and made.element == wanted.element)


@metric("mind2web_operation_f1", groups=_EPISODE, version=1)
def operation_f1(answer: str, reference: str) -> float:
    """F1 of the sets of words of operation and value (Mind2Web)."""
    made, wanted = parse_action(answer), parse_action(reference)
    if not wanted.element:
        return 0.0
    said, right = _words(made), _words(wanted)
    return 100 * 2 * len(said & right) / (len(said) + len(right)) if said | right else 100.0


@metric("mind2web_step", groups=_EPISODE, version=1)
def step_success(answer: str, reference: str) -> float:
    """100 where element, operation and value are right (Mind2Web's step success), else 0."""
    is_whole = operation_f1(answer, reference) == 100.0
    return element_accuracy(answer, reference) if is_whole else 0.0


@metric("mind2web_episode", groups=(*_EPISODE, "steps"), version=1)
def episode_success(answer: str, reference: str) -> float:
    """100 where all steps of the episode are right (Mind2Web's success rate), else 0."""
    return step_success(answer, reference)  # the minimum over the group counts


def _words(action: WebAction) -> set[str]:
    return {*f"{action.operation} {action.value}".split()}
