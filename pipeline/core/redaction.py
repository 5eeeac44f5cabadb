"""Hide secrets in what leaves the process: lines on standard error, logs, errors, rows."""

import re

# The password or token of an address; a number before a slash is a port.
_PASSWORD = re.compile(r"(://[^/@\s:]*):(?!\d+/)[^@\s]+@|(https?://)[^/@\s:]+@")
_keys: set[str] = set()


def remember_key(key: str) -> str:
    """The key without white space around it, which `redacted` hides from now on."""
    stripped = key.strip()
    _keys.update(stripped.splitlines())  # errors escape what is between them
    return stripped


def redacted(text: str) -> str:
    """The text with *** in place of keys remembered, and of passwords and tokens in addresses, such
    as a proxy's."""
    for key in _keys:
        text = text.replace(key, "***")
    return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] else f"{found[2]}***@", text)
