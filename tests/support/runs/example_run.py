"""A plugin of docs/examples, run by gistmill.testing in a process of its own: what a plugin brings
stays in the process that loads it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.command import ROOT
from tests.support.fork_server import forked

EXAMPLES = ROOT / "docs" / "examples"
_CODE = """
import json, sys
from pathlib import Path
from gistmill.testing import run
plugin, method, replies, words, folder, more = json.loads(sys.argv[1])
rows = run(plugin, method, replies, *words, folder=Path(folder), **more)
print(json.dumps(rows, default=str))
"""
Rows = dict[str, list[dict[str, Any]]]


def example_rows(
    folder: Path,
    method: str,
    replies: Sequence[Mapping[str, Any]] | None,
    *words: str,
    plugin: str = "",
    **more: Any,
) -> Rows:
    """The rows by table of a run of the example in `folder`; `plugin`: where it is not called as
    the method. It starts in docs/examples, and names the plugin as it is called there."""
    own = [plugin or method.partition("(")[0], method, replies, words, str(folder), more]
    done = forked("-c", _CODE, json.dumps(own), folder=EXAMPLES)
    assert done.returncode == 0, done.stderr
    rows: Rows = json.loads(done.stdout.splitlines()[-1])
    return rows


def sent_texts(rows: Rows, prompt: str, question: str | None = None) -> list[str]:
    """The texts of the requests of a prompt, by turn."""
    calls = [c for c in rows["calls"] if (c["prompt"], c["question_id"]) == (prompt, question)]
    calls.sort(key=lambda call: call["turn"] or 0)
    return ["\n".join(one["content"] for one in call["messages"]) for call in calls]
