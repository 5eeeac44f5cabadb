"""The process that isolated.py starts: reads files from standard input, writes their texts.

Its arguments are folders of plugins, imported for a kind of theirs.

A request is a line `{"kind": ..., "bytes": N}` and N bytes; a reply is a line of JSON.
"""

import json
import os
import sys
from dataclasses import asdict
from typing import Any

from pipeline.core.plugins import load_plugins
from stages.extract import epub, pdf, web, word  # noqa: F401  # they register their extractors
from stages.extract.extracted import EXTRACTORS, MOST_BYTES, TOO_LARGE, Extracted, UnreadableError

_MOST_MEMORY = 2**32  # bytes of address space


def main() -> None:
    """Serve requests until standard input ends."""
    _limit_memory()
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no reply
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        replies.write(json.dumps(_reply(asked["kind"], sys.stdin.buffer.read(asked["bytes"]))))
        replies.write("\n")
        replies.flush()


def _limit_memory() -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))


def _reply(kind: str, content: bytes) -> dict[str, Any]:
    if kind not in EXTRACTORS:
        load_plugins(sys.argv[1:])
    try:
        found = EXTRACTORS[kind](content)
        if not isinstance(found, Extracted):
            what = type(found).__name__
            raise UnreadableError(f"its extractor returned {what}; return Extracted")
        if len(found.text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
            raise UnreadableError(f"{TOO_LARGE}; fix or delete it")
    except UnreadableError as wrong:
        return {"wrong": str(wrong)}
    return asdict(found)


if __name__ == "__main__":
    main()
