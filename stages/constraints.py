"""What a constrained reply may be: its prompt's form, filled with what is legal, and no more.

Every function takes the form that the family gives the prompt, null where replies are free: then
nothing is constrained. Numbers are those that prompts show. Pure; parsing.py reads all of it back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from string import ascii_uppercase
from typing import Any

from pipeline.engine import Constraint
from stages import parsing

STOP = "STOP"
STRICT = ("YES", "NO")
PERMISSIVE = ("Yes", "Yes, partially", "No")

_SPECIAL = {ord(sign): f"\\{sign}" for sign in "\\^$.*+?()[]{}|"}


def break_point(form: str | None, labels: Sequence[int]) -> Constraint | None:
    """One of the window's labels."""
    return _one_of(form, labels)


def page_list(form: str | None, pages: Sequence[int], max_pages: int) -> Constraint | None:
    """At most `max_pages` of a run of page numbers without a gap, or none. One may come twice."""
    if form is None:
        return None
    before, after = (part.translate(_SPECIAL) for part in form.split("{}"))
    return Constraint(regex=f"{before}{_list(pages, max_pages)}{after}")


def page_or_stop(form: str | None, pages: Iterable[int]) -> Constraint | None:
    """One of the pages that are left, or STOP."""
    return _one_of(form, pages, STOP)


def option(form: str | None, num_options: int) -> Constraint | None:
    """A letter; to a question without options anything."""
    return _one_of(form, ascii_uppercase[:num_options]) if num_options else None


def strict(form: str | None) -> Constraint | None:
    return _one_of(form, STRICT)


def permissive(form: str | None) -> Constraint | None:
    return _one_of(form, PERMISSIVE)


def numbers(first: int, last: int) -> str:
    """A regex of the numbers from `first` to `last`, without leading zeros; neither is negative.

    As many alternatives as twice the digits at most: 0 to 137 is
    `[0-9]|[1-9][0-9]|1[0-2][0-9]|13[0-7]`.
    """
    found: list[str] = []
    while first <= last:
        size = _block(first, last)
        before, digit = divmod(first // size, 10)
        most = min(9, digit + (last - first + 1) // size - 1)
        one = str(digit) if most == digit else f"[{digit}-{most}]"
        found.append(f"{before or ''}{one}" + "[0-9]" * (len(str(size)) - 1))
        first += (most - digit + 1) * size
    return "|".join(found)


def _block(first: int, last: int) -> int:
    """The largest power of ten such that so many numbers from `first` differ in last digits only;
    0 is alone, as it has no more digits."""
    size = 1
    while first and first % (10 * size) == 0 and first + 10 * size - 1 <= last:
        size *= 10
    return size


def misread(forms: Mapping[str, str]) -> Iterator[str]:
    """The first reply in each form, if any, that its parser does not read as what it means."""
    for prompt, read, meant in _READ_BACK:
        for what in meant:
            reply = _filled(forms[prompt], what)
            if read(reply) != meant[what]:
                yield f"{prompt}: {reply!r} is read as {read(reply)}, not {meant[what]}"
                break


def _filled(form: str, what: object) -> str:
    """A reply. Braces may stand in a form, so it is none for `str.format`."""
    return form.replace("{}", str(what))


def _one_of(form: str | None, ids: Iterable[object], *others: str) -> Constraint | None:
    if form is None:
        return None
    return Constraint(choices=(*(_filled(form, one) for one in ids), *others))


def _list(pages: Sequence[int], max_pages: int) -> str:
    if not pages:
        return ""
    page = f"({numbers(pages[0], pages[-1])})"
    more = f"(, {page}){{0,{max_pages - 1}}}" if max_pages > 1 else ""
    return f"({page}{more})?"


# What forms are tried with: numbers of each length, lists of each length, every letter.
_NUMBERS = (0, 1, 9, 10, 57, 100, 2748)
_LISTS = [_NUMBERS[:length] for length in range(len(_NUMBERS) + 1)]
_OPTIONS = {letter: index for index, letter in enumerate(ascii_uppercase)}
_READ_BACK: Sequence[tuple[str, Callable[[str], object], Mapping[Any, object]]] = (
    ("break_point", parsing.parse_break_point, {n: n for n in _NUMBERS}),
    ("look_up_p", parsing.parse_pages, {", ".join(map(str, pages)): pages for pages in _LISTS}),
    ("look_up_s", parsing.parse_page_or_stop, {n: n for n in _NUMBERS}),
    ("answer", partial(parsing.parse_option, num_options=len(_OPTIONS)), _OPTIONS),
)
