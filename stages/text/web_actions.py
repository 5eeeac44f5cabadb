"""Actions on a web page as lines of text: the element, the operation, the value that is entered."""

import re
from dataclasses import dataclass

_LINE = re.compile(
    r"^\W*(element|operation|value)\W*?[:：][ \t]*(.*)$", re.IGNORECASE | re.MULTILINE
)
_NUMBER = re.compile(r"\w+")


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
    """The action that a text states, its last statement of each; "" for what it does not say."""
    found = {name.lower(): said.strip().strip("*`\"'") for name, said in _LINE.findall(text)}
    element = _NUMBER.search(found.get("element", ""))
    operation = _NUMBER.search(found.get("operation", ""))
    return WebAction(
        element[0] if element else "", operation[0].upper() if operation else "",
        found.get("value", ""),
    )  # fmt: skip
