"""The docs' run with engine=openai, of a model that thinks in its replies: only calls.thinking
holds what it thought."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from tests.support.command import QMSUM, gistmill, sql
from tests.support.docs.pages import page
from tests.support.engines.loopback_server import Answer, LoopbackServer

MUSING = "Hm, let me muse"
METHODS = "gist_only,readagent_p(max_pages=1),readagent_s(max_pages=1)"
TABLES = ("pages", "gists", "lookups", "answers", "ratings", "scores")
# By what a prompt has and no other: the reply after the thinking.
REPLIES = {
    "Label: <number>": "Label: <{label}>",
    "Write nothing but the shortened page": "They talked of the remote.",
    "leave the brackets empty": "I want to look up Page [0] to read it",
    "number of the one page": "Page 1",
    "paragraph of plain sentences": "The remote was discussed.",
    "Reply with one word, YES or NO": "YES",
    "one of three verdicts": "Yes",
}


@pytest.fixture(autouse=True)
def _own_ray() -> Iterator[None]:
    """Whose workers have the key in their environment."""
    ray.shutdown()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-none")
        yield
    ray.shutdown()


def thinking(body: dict[str, Any]) -> Answer:
    """Thoughts that name other values; of every other prompt the chat template opened them."""
    prompt = body["messages"][0]["content"]
    (reply,) = [reply for mark, reply in REPLIES.items() if mark in prompt]
    label = re.findall(r"^<(\d+)>$", prompt, re.MULTILINE)
    said = reply.format(label=label[0] if label else "")
    opened = "<think>\n" if len(prompt) % 2 else ""
    return Answer(text=f"{opened}{MUSING}: NO. Page [2]? Label: <0>?\n</think>\n\n{said}")


def meeting(folder: Path) -> Path:
    """The first 150 turns of a meeting and one question."""
    with QMSUM.open(encoding="utf-8") as lines:
        whole = json.loads(next(lines))
    whole["meeting_transcripts"] = whole["meeting_transcripts"][:150]
    whole["general_query_list"] = whole["general_query_list"][:1]
    whole["specific_query_list"] = []
    path = folder / "val.jsonl"
    path.write_text(json.dumps(whole) + "\n", encoding="utf-8")
    return path


def command_of_the_docs(corpus: Path, url: str) -> list[str]:
    text = page("docs/gpus.md")
    (line,) = re.findall(r"^gistmill (run .*engine=openai .*)$", text, re.MULTILINE)
    own = {"corpus.path": str(corpus), "engine.base_url": url, "engine.model": "m"}
    words = [word.partition("=") for word in line.split()]
    return [key + sign + own.get(key, value) for key, sign, value in words]


@pytest.mark.slow
def test_no_row_holds_what_was_thought(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    model = {"id": "m", "max_model_len": 40_000}
    with LoopbackServer(answer=thinking, model=model) as server:
        command = command_of_the_docs(meeting(tmp_path), server.url)
        done = gistmill(*command, f"methods={METHODS}", f"warehouse={warehouse}")
    assert done.returncode == 0, done.stderr
    calls = sql(warehouse, "from calls")
    prompts = {"break_point", "gist", "look_up_p", "look_up_s", "answer"}
    assert {call["prompt"] for call in calls} == {*prompts, "rate_strict", "rate_permissive"}
    for call in calls:
        assert call["thinking"].startswith(MUSING)
        assert MUSING not in call["reply"] and "think>" not in call["reply"]
    for table in TABLES:
        rows = sql(warehouse, f"from {table}")
        assert rows
        assert MUSING not in str(rows) and "think>" not in str(rows)
    assert {row["gist"] for row in sql(warehouse, "from gists")} == {"They talked of the remote."}
    answers = sql(warehouse, "from answers")
    assert {row["answer"] for row in answers} == {"The remote was discussed."}
    used = {row["method"]: row["used"] for row in sql(warehouse, "from lookups")}
    assert used == dict(zip(METHODS.split(","), ([], [0], [1]), strict=True))
    assert {row["chosen_by"] for row in sql(warehouse, "from pages")} <= {"model", "end", "rule"}
