"""Replies that are bad as a whole, at the bounds and beyond; a server that is another model."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command import gistmill, sql_values, succeed
from tests.support.engines.loopback_server import Answer, LoopbackServer
from tests.support.reading import written_family
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.slow
NUMBER = 20  # documents of one page with one question; a quarter of the right options is A
LETTERS = "ABCD"
EXAMPLE = "I want to look up Page [777] to see"
ANSWER = """{% for passage in passages %}{{ passage.page_number }} {{ passage.text }}
{% endfor %}{{ question }} {{ options }} {{ asked_at }}
"""
LOOK_UP = f"{ANSWER}Name {{{{ max_pages }}}} pages, such as:\n{EXAMPLE}\n"
FINDINGS = [  # stage and what is out of bounds, with the counts that its line has
    ("gist", "5 of 20 replies to gist were cut"),
    ("gist", "55% of the shortened texts copy"),
    ("gist", "15% of the shortened texts have under 3%"),
    ("look_up", "5 of 20 replies to look_up_p repeat"),
    ("look_up", "15 of 20 replies to look_up_p are 'I want"),
    ("answer", "7 of 20 replies to answer are of no use (4 cannot be read, 3"),
    ("answer", "10 of 13 choices"),
]


def page(number: int) -> str:
    return " ".join(f"w{number:02}x{place}" for place in range(40))


def first(number: int, *steps: tuple[int, Any]) -> dict[str, Any]:
    """The rule of the first step beyond the number; a text is its reply."""
    value = next(value for beyond, value in steps if number < beyond)
    return value if isinstance(value, dict) else {"reply": value}


def script(beyond: int) -> list[dict[str, Any]]:
    """Replies at the bounds, or with one more beyond each."""
    rules = []
    for n in range(NUMBER):
        cut = {"reply": page(n), "finish_reason": "length"}  # which copies, too
        most = " ".join(page(n).split()[:32])  # of 40 words: 80% are no copy; 1 is 2.5%
        gist = first(n, (4 + beyond, cut), (10 + beyond, page(n)), (12 + 2 * beyond, "No."),
                     (NUMBER, most))  # fmt: skip
        # There is no page 777.
        look_up = first(n, (4 + beyond, EXAMPLE), (18 + 2 * beyond, "I want to look up Page [0]"),
                        (NUMBER, "I want to look up Page []"))  # fmt: skip
        answer = first(n, (3 + beyond, "Hard to say."), (6 + beyond, "Answer: (Z)"),
                       (15 + 2 * beyond, "Answer: (C)"), (NUMBER, "Answer: (A)"))  # fmt: skip
        by_prompt = {"gist": gist, "look_up_p": look_up, "answer": answer}
        rules += [{"prompt": prompt, "match": f"w{n:02}x", **rule}
                  for prompt, rule in by_prompt.items()]  # fmt: skip
    return rules


def words(folder: Path, beyond: int) -> list[str]:
    documents = [{"document_id": f"d{n:02}", "text": page(n)} for n in range(NUMBER)]
    options = [f"option {letter}" for letter in LETTERS]
    questions = [
        {"document_id": f"d{n:02}", "question_id": f"q{n:02}", "question": f"What of w{n:02}x?",
         "options": options, "answer_index": n % len(LETTERS)}
        for n in range(NUMBER)
    ]  # fmt: skip
    write(folder / "corpus", documents, questions)
    file = folder / "script.yaml"
    file.write_text(yaml.safe_dump({"replies": script(beyond)}))
    family = written_family(folder, "wording: ours")
    (family / "look_up_p.jinja").write_text(LOOK_UP)
    (family / "answer.jinja").write_text(ANSWER)
    return ["corpus=tables", f"corpus.path={folder / 'corpus'}", f"family={family}",
            "methods=readagent_p(max_pages=1)", "engine=scripted", f"engine.script={file}",
            "memory=uniform", f"warehouse={folder / 'warehouse'}", "max_problem_rate=1",
            "rater=none", "cluster=inline"]  # fmt: skip


def test_at_the_bounds_nothing_is_said(tmp_path: Path) -> None:
    succeed("run", *words(tmp_path, beyond=0))
    for verb in ("report", "status"):
        said = succeed(verb, f"warehouse={tmp_path / 'warehouse'}", "--json")
        assert json.loads(said)["findings"] == []


def test_beyond_them_every_finding_is_a_line(tmp_path: Path) -> None:
    printed = succeed("run", *words(tmp_path, beyond=1))
    where = f"warehouse={tmp_path / 'warehouse'}"
    lines = json.loads(succeed("report", where, "--json"))["findings"]
    for stage, text in FINDINGS:
        pattern = re.compile(rf"{stage}\b.*: {re.escape(text)}")
        assert sum(pattern.match(line) is not None for line in lines) == 1, text
    assert len(lines) == len(FINDINGS)
    assert json.loads(succeed("status", where, "--json"))["findings"] == lines
    (report,) = tmp_path.glob("warehouse/runs/*/report.md")
    for text in (printed, report.read_text(), succeed("status", where), succeed("report", where)):
        assert all(line in text for line in lines)
    query = "select prompt, replies, unread, illegal, truncated, choices from reply_health"
    assert sql_values(tmp_path / "warehouse", f"{query} order by prompt") == [
        ("answer", 20, 4, 3, 0, 13), ("gist", 20, 0, 0, 5, 0), ("look_up_p", 20, 0, 5, 0, 0),
    ]  # fmt: skip
    # Documents 7 to 19 got an option: 10 times C, 3 times A. Right are A 3, B 3, C 3 and D 4 times.
    query = "select letters, right_letters from reply_health where prompt = 'answer'"
    assert sql_values(tmp_path / "warehouse", query) == [(
        pytest.approx({"C": 10 / 13, "A": 3 / 13}),
        pytest.approx({"A": 3 / 13, "B": 3 / 13, "C": 3 / 13, "D": 4 / 13}),
    )]  # fmt: skip


def test_another_model_is_one_line_and_a_mark(tmp_path: Path) -> None:
    """The server says it with the answer alone, not with the three gists."""
    write(tmp_path / "corpus", [document(1)], [question(1, of=1)])
    warehouse = f"warehouse={tmp_path / 'w'}"

    def answer(body: dict[str, Any]) -> Answer:
        is_asked = "number 1 about" in body["messages"][-1]["content"]
        return Answer(model=" m-2024-08-06 " if is_asked else None)

    with LoopbackServer(answer=answer) as server:
        words = (
            "run", "run=night", "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM,
            "rater=none", "methods=gist_only", warehouse, "engine=openai",
            f"engine.base_url={server.url}", "engine.model=m", "engine.sequences=1",
        )  # fmt: skip
        told = gistmill(*words).stderr
        assert gistmill(*words).stderr.count("was answered by") == 1  # nothing is left to do
    line = "openai:m was answered by m (3 calls), m-2024-08-06 (1 calls), as the server says"
    assert told.count(line) == told.count("answered by") == 1
    assert f"OTHER MODEL: {line}." in succeed("report", warehouse)
    assert f"OTHER MODEL: {line}." in (tmp_path / "w/runs/night/report.md").read_text()
    assert f"\n- {line}\nReplies are" in succeed("cite", warehouse)
    names = sql_values(tmp_path / "w", "select distinct answered_by from answered_by order by all")
    assert names == [("m",), ("m-2024-08-06",)]
