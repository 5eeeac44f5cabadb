"""Mind2Web's metrics of one action (arXiv 2306.06070, section 4.1; OSU-NLP-Group/Mind2Web,
action_prediction/metric.py): the element, the operation with its value, and both. Where the
reference has no element all three are 0. The report has their means over episodes (scores.sql)."""

from stages.text.web_actions import WebAction, parse_action


def element_accuracy(answer: str, reference: str) -> float:
    """100 where the element is the reference's."""
    made, wanted = parse_action(answer), parse_action(reference)
    return 100.0 * (bool(made.element) and made.element == wanted.element)


def operation_f1(answer: str, reference: str) -> float:
    """F1 of the sets of words of operation and value."""
    made, wanted = parse_action(answer), parse_action(reference)
    if not wanted.element:
        return 0.0
    said, right = _words(made), _words(wanted)
    return 100 * 2 * len(said & right) / (len(said) + len(right)) if said | right else 100.0


def step_success(answer: str, reference: str) -> float:
    """100 where element, operation and value are right."""
    is_whole = operation_f1(answer, reference) == 100.0
    return element_accuracy(answer, reference) if is_whole else 0.0


def _words(action: WebAction) -> set[str]:
    return {*f"{action.operation} {action.value}".split()}
