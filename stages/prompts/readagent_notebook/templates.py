"""Turn the notebook's format strings into templates of our prompts, by their names and fields."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from string import Formatter

from stages.prompts.readagent_notebook.strings import Notebook, Template

PARTIAL = "_notebook.jinja"  # the macros below
FREE = "_free_answer.jinja"  # how a question without options is answered

# What stands in a field: an expression over the fields of our prompt.
_EXPRESSIONS = {
    "preceding": "preceding_text(preceding)",
    "passage": "labelled(paragraphs)",
    "following": "following",
    "first_label": "label(paragraphs, 0)",
    "last_label": "label(paragraphs, -1)",
    "page": "page",
    "memory": "memory(passages)",
    "question": "dated(question, asked_at)",
    "options": "lettered(options)",
    "max_pages": "max_pages",
    "pages_read": 'pages_read | join(", ")',
    "answer": "answer",
    "reference": "reference",
    "plain_question": "question",
}
_TEXT = {"gists": "memory", "memory": "memory", "menu": "memory", "article": "memory",
         "text": "memory", "passage": "memory", "context": "memory"}  # fmt: skip
_ASKED = {**_TEXT, "question": "question", "query": "question", "options": "options",
          "choices": "options", "max_pages": "max_pages", "num_pages": "max_pages"}  # fmt: skip
_JUDGED = {"question": "plain_question", "answer": "answer", "response": "answer",
           "prediction": "answer", "model_answer": "answer", "reference": "reference",
           "reference_answer": "reference", "label": "reference", "gold": "reference"}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One of our prompts as the notebook may have it: the names of its string, its fields in the
    order of numbered ones, and by name."""

    prompt: str
    names: re.Pattern[str]
    numbered: Sequence[str]
    named: Mapping[str, str]
    needed: Sequence[str]


def _kind(
    prompt: str, names: str, numbered: str, named: Mapping[str, str], needed: str | None = None
) -> Kind:
    needs = (numbered if needed is None else needed).split()
    return Kind(prompt, re.compile(names), numbered.split(), named, needs)


# The first whose `names` a string's name matches.
_KINDS = (
    _kind("rate_strict", "strict", "", _JUDGED, "plain_question answer reference"),
    _kind("rate_permissive", "permissive|lenient", "", _JUDGED, "plain_question answer reference"),
    _kind("break_point", "paginat|pause|break", "preceding passage following",
          {"preceding": "preceding", "previous": "preceding", "passage": "passage",
           "text": "passage", "end_tag": "following", "following": "following",
           "start": "first_label", "end": "last_label"}, "passage"),
    _kind("gist", "shorten|gist", "page",
          {name: "page" for name in ("page", "page_text", "passage", "text")}),
    _kind("look_up_s", "(?=.*look_?up).*(seq|single|_s(_|$))", "memory question pages_read",
          {**_ASKED, "pages_read": "pages_read", "retrieved": "pages_read"}),
    _kind("look_up_p", "look_?up", "memory question options", _ASKED, "memory question"),
    _kind(FREE, "free.*answer|answer.*free", "memory question", _ASKED),
    _kind("answer", "answer", "memory question options", _ASKED, "memory question"),
)  # fmt: skip
PROMPTS = tuple(kind.prompt for kind in _KINDS if kind.prompt != FREE)
_NAME = re.compile(r"prompt|template", re.IGNORECASE)
_NUM_PAGES = re.compile(r"\b\d+(?= ?(?:page\(s\)|pages?\b))")  # in "1 to 6 page(s)" the 6


@dataclass
class Imported:
    """Templates by prompt, with the string that each was made of, and why others were left out."""

    sources: dict[str, str] = field(default_factory=dict)
    taken: dict[str, Template] = field(default_factory=dict)
    added: dict[str, list[str]] = field(default_factory=dict)  # what ours say and the string not
    left_out: list[tuple[Template, str]] = field(default_factory=list)


class _UnmappedError(Exception):
    """A string cannot be made into a template; the message says why."""


def imported(notebook: Notebook) -> Imported:
    """The templates that a notebook's strings can be made into. Where two are for one prompt the
    later counts, as it would if the notebook were run."""
    made = Imported()
    for template in notebook.strings:
        kind = next((k for k in _KINDS if k.names.search(template.name.lower())), None)
        if not _NAME.search(template.name):
            continue
        if kind is None:
            made.left_out.append((template, "its name is that of no prompt of ReadAgent"))
            continue
        try:
            source, added = _source(kind, template)
        except _UnmappedError as error:
            made.left_out.append((template, str(error)))
            continue
        if earlier := made.taken.get(kind.prompt):
            made.left_out.append((earlier, f"{template.name} of cell {template.cell} comes later"))
        made.sources[kind.prompt], made.taken[kind.prompt] = source, template
        made.added[kind.prompt] = added
    return made


def partial() -> str:
    """The macros that the templates use."""
    return files("stages.prompts.readagent_notebook").joinpath(PARTIAL).read_text(encoding="utf-8")


def _source(kind: Kind, template: Template) -> tuple[str, list[str]]:
    """A template, and the fields that it says and the string does not."""
    if template.text is None:
        raise _UnmappedError("an f-string, whose values only running the code would tell")
    parts, shown = [], []
    for literal, expression in _parts(kind, template.text):
        parts.append(_escaped(literal))
        if expression is not None:
            shown.append(expression)
            parts.append(f"{{{{ {_EXPRESSIONS[expression]} }}}}")
    if missing := [name for name in kind.needed if name not in shown]:
        raise _UnmappedError(f"has no field for {', '.join(missing)}")
    text, added = "".join(parts), []
    if kind.prompt == "look_up_p" and "max_pages" not in shown:
        text, found = _NUM_PAGES.subn("{{ max_pages }}", text)
        if not found:
            text += "{{ at_most(max_pages) }}"
        added.append("max_pages")
    text, more = _completed(kind.prompt, text, shown)
    used = [name for name in _MACROS if f"{name}(" in text]
    head = f'{{% from "{PARTIAL}" import {", ".join(used)} %}}\n' if used else ""
    return f"{head}{text}\n", added + more  # Jinja leaves out a template's last line break


def _completed(prompt: str, text: str, shown: Sequence[str]) -> tuple[str, list[str]]:
    """The text with what our prompt shows at times and the notebook's never does."""
    added = []
    if prompt in ("look_up_p", "look_up_s", "answer") and "options" not in shown:
        after = f"{{{{ {_EXPRESSIONS['question']} }}}}"
        text = text.replace(
            after, f'{after}{{{{ "\\n" if options }}}}{{{{ {_EXPRESSIONS["options"]} }}}}'
        )
        added.append("options")
    if prompt == "look_up_s":
        text += "{{ turned_down(refused, previous_answer, last_was_unread) }}"
        added.append("refused, previous_answer, last_was_unread")
    if prompt == FREE:
        text += "{{ length(answer_words) }}"
        added.append("answer_words")
    if prompt == "answer":
        text = f'{{% if options %}}\n{text}{{%+ else %}}\n{{% include "{FREE}" %}}\n{{% endif %}}'
    return text, added


def _parts(kind: Kind, text: str) -> Iterator[tuple[str, str | None]]:
    """The literal pieces of a format string, each with what stands in the field after it."""
    try:
        pieces = list(Formatter().parse(text))
    except ValueError as error:
        raise _UnmappedError(f"is no format string: {error}") from None
    number = 0
    for literal, name, spec, conversion in pieces:
        if name is None:
            yield literal, None
            continue
        if spec or conversion:
            raise _UnmappedError(f"formats its field {{{name}}} in a way that is not known here")
        place, number = (str(number), number + 1) if name == "" else (name, number)
        yield literal, _meaning(kind, place)


def _meaning(kind: Kind, name: str) -> str:
    if name.isdecimal() and len(name) < 3:
        if int(name) < len(kind.numbered):
            return kind.numbered[int(name)]
    elif name.lower() in kind.named:
        return kind.named[name.lower()]
    raise _UnmappedError(f"has a field {{{name}}} of which it is not known what stands in it")


def _escaped(literal: str) -> str:
    """Text as a template that renders it."""
    return literal.replace("{", '{{ "{" }}')


_MACROS = ("preceding_text", "labelled", "label", "memory", "dated", "lettered", "at_most",
           "length", "turned_down")  # fmt: skip
