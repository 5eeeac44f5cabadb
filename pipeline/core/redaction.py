"""Hide secrets in what leaves the process: lines on standard error, logs, errors, rows."""

import re

# The password or token of an address; a number before a slash is a port.
_PASSWORD = re.compile(r"(://[^/@\s:]*):(?!\d+/)[^@\s]+@|(https?://)[^/@\s:]+@")
_keys: set[str] = set()


def remember_key(key: str) -> str:
    """Remember a key, which `redacted` hides from then on; returns it without outer white space."""
    stripped = key.strip()
    _keys.update(stripped.splitlines())  # errors escape line breaks, so each line is hidden
    return stripped


def redacted(text: str) -> str:
    """Replace remembered keys, and passwords and tokens in addresses, by ***."""
    for key in _keys:
        text = text.replace(key, "***")
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] else f"{found[2]}***@", text)
