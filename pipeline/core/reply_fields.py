"""The values that a reply marks by a notation of its own: JSON, tags, LaTeX's box."""

import json
import re
from collections.abc import Iterator
from typing import Any

Field = tuple[str, Any]  # a key in words, "next page"; a value of JSON, or the text within a tag
_JSON = re.compile(r"\{\s*\"|\[\s*\{")
_TAGGED = re.compile(r"<(?P<key>[A-Za-z][\w-]{0,30})>(?P<value>.{0,2000}?)</(?P=key)>", re.DOTALL)
_HTML = re.compile(r"(?:b|i|u|p|em|strong|code|pre|span|div|mark|center|li|ul|ol|h\d)\Z", re.I)
_BOX = re.compile(
    r"\\f?box(?:ed)?\s?\{(?P<latex>(?:[^{}]|\{[^{}]*\}){0,2000})\}"
    r"|<\|begin_of_box\|>(?P<token>.{0,2000}?)<\|end_of_box\|>",
    re.DOTALL,
)
_LABELLED = re.compile(r"[\w\"”)][\s*_]{0,9}[:=][\s*_$]{0,9}\Z")
_WORDS = re.compile(r"[\s_-]+|(?<=[a-z])(?=[A-Z])")  # what parts the words of a key
# Fields that justify the value or say how sure it is, and those that ask for the contrary.
_ASIDE = re.compile(
    r"\b(?:reason|expla|rational|justif|thought|thinking|analy|evidence|comment|note|quote|why"
    r"|confidence|certain|scor|probab|same|continu|wrong|incorrect|not\b)",
    re.IGNORECASE,
)
_MOST_FIELDS = 100
_DECODER = json.JSONDecoder(strict=False)  # line breaks within strings


def with_fields_as_lines(reply: str) -> tuple[str, list[Field]]:
    """The reply with a line `key: value` for each field of its JSON objects and each tag, and these
    fields; those beside the value (reasons, confidence) are left out."""
    fields: list[Field] = []

    def lines(found: list[Field]) -> str:
        kept = [(key, value) for key, value in found if len(key) > 1 and not _ASIDE.search(key)]
        fields.extend(kept)
        return "".join(f"\n{key}: {shown(value)}\n" for key, value in kept)

    parts, position = [], 0
    for start, end, value in _objects(reply):
        parts += [reply[position:start], lines(_fields(value))]
        position = end
    text = "".join([*parts, reply[position:]])

    def untagged(tag: re.Match[str]) -> str:
        value = tag["value"].strip()
        return value if _HTML.match(tag["key"]) else lines([(_key(tag["key"]), value)])

    return _TAGGED.sub(untagged, text) if "</" in text else text, fields


def boxes(reply: str) -> Iterator[tuple[str, bool]]:
    """The texts in `\\boxed{}`, and whether a label ("Answer: ") says what each is."""
    for box in _BOX.finditer(reply):
        before = reply[max(0, box.start() - 40) : box.start()]
        yield box["latex"] or box["token"] or "", bool(_LABELLED.search(before))


def json_object(reply: str) -> dict[str, Any] | None:
    """The object that a reply consists of, if it does."""
    found = next(_objects(reply), None)
    is_whole = found and not (reply[: found[0]] + reply[found[1] :]).strip()
    return found[2] if found and is_whole and isinstance(found[2], dict) else None


def shown(value: Any) -> str:
    """A value of JSON as a reply would state it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return str(value)


def _objects(reply: str) -> Iterator[tuple[int, int, Any]]:
    """The places of objects and lists of objects in a reply, and what they are in JSON."""
    position = 0
    for _ in range(_MOST_FIELDS):
        if (start := _JSON.search(reply, position)) is None:
            return
        try:
            value, position = _DECODER.raw_decode(reply, start.start())
        except (ValueError, RecursionError):
            position = start.end()
            continue
        yield start.start(), position, value


def _fields(value: Any) -> list[Field]:
    """The fields of an object and of those in it; of a list of objects the values by key."""
    if isinstance(value, dict):
        nested = [
            field for held in value.values() if isinstance(held, dict) for field in _fields(held)
        ]
        return [(_key(k), v) for k, v in value.items() if not isinstance(v, dict)] + nested
    objects = [item for item in value if isinstance(item, dict)]
    keys = dict.fromkeys(key for item in objects for key in item)
    return [(_key(key), [item[key] for item in objects if key in item]) for key in keys]


def _key(key: str) -> str:
    return " ".join(_WORDS.split(key)).strip().lower().rstrip("0123456789 ")
