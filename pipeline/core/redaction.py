"""Hide secrets in what leaves the process: lines on standard error, logs, errors, rows."""

import re

_LEAST = 8  # characters of a key of which a part is hidden, too
_SHOWN = 6  # characters at either end of a key by which servers repeat it
_INSIDE = r"[^\s'\",()]*"  # the rest of a key that is shortened
_PASSWORD = re.compile(r"(://[^/@\s:]*):(?!\d+/)[^@\s]+@")  # not a port
_TOKEN = re.compile(r"(https?://)[^/@\s:]+@")
_keys: set[str] = set()


def remember_key(key: str) -> str:
    """The key without white space around it, which `redacted` hides from now on."""
    stripped = key.strip()
    if stripped:
        _keys.add(stripped)
    return stripped


def has_password(text: str) -> bool:
    """True of a text with an address that has a password or token in it."""
    return bool(_PASSWORD.search(text) or _TOKEN.search(text))


def has_key(text: str) -> bool:
    """True of a text with one of the keys remembered."""
    return any(key in text for key in _keys)


def redacted(text: str) -> str:
    """The text with *** in place of keys remembered, of what begins or ends as one does, and of
    passwords and tokens in addresses, such as a proxy's."""
    for key in _keys:
        text = text.replace(key, "***")
        if len(key) >= _LEAST:
            head, tail = re.escape(key[:_SHOWN]), re.escape(key[-_SHOWN:])
            text = re.sub(f"{head}{_INSIDE}|{_INSIDE}{tail}", "***", text)
    return _TOKEN.sub(r"\1***@", _PASSWORD.sub(r"\1:***@", text))
