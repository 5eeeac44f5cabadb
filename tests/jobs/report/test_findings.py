"""Replies that are bad as a whole: a run of twenty documents at the bounds, and one just beyond. A
server that says it is another model: kept per call, and said."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command import gistmill, sql, succeed
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
FINDINGS = {  # stage and what is out of bounds, with the counts that its line has
    "gist": [
        "5 of 20 replies to gist were cut",
        "55% of the shortened texts copy",
        "15% of the shortened texts have under 3%",
    ],
    "look_up": ["5 of 20 replies to look_up_p repeat", "15 of 20 replies to look_up_p are 'I want"],
    "answer": ["7 of 20 replies to answer are of no use (4 cannot be read, 3", "10 of 13 choices"],
}


def page(number: int) -> str:
    return " ".join(f"w{number:02}x{place}" for place in range(40))


def rules(prompt: str, *replies: tuple[int, Any]) -> Iterator[dict[str, Any]]:
    """Rules for the first documents: so many get the first reply, the next so many the second. A
    function makes the reply, or with `finish_reason` the rule, from the document's number."""
    numbers = iter(range(NUMBER))
    for count, make in replies:
        for number in (next(numbers) for _ in range(count)):
            reply = make(number) if callable(make) else make
            rule = reply if isinstance(reply, dict) else {"reply": reply}
            yield {"prompt": prompt, "match": f"w{number:02}x", **rule}


def script(beyond: int) -> list[dict[str, Any]]:
    """Replies at the bounds, or with one more beyond each."""
    cut = {"finish_reason": "length"}
    gists = [
        (4 + beyond, lambda n: {"reply": page(n), **cut}),  # cut, and copies
        (6, page),  # of 40 words
        (2 + beyond, "No."),  # 1 word of 40 is 2.5%
        (NUMBER - 12 - 2 * beyond, lambda n: " ".join(page(n).split()[:32])),  # 80% are no copy
    ]
    look_ups = [
        (4 + beyond, EXAMPLE),  # there is no page 777
        (14 + beyond, "I want to look up Page [0]"),
        (2 - 2 * beyond, "I want to look up Page []"),
    ]
    answers = [
        (3 + beyond, "Hard to say."),
        (3, "Answer: (Z)"),
        (9 + beyond, "Answer: (C)"),
        (5 - 2 * beyond, "Answer: (A)"),
    ]
    return [*rules("gist", *gists), *rules("look_up_p", *look_ups), *rules("answer", *answers)]


def words(folder: Path, beyond: int) -> list[str]:
    """The words of the run."""
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


@pytest.fixture(scope="module")
def beyond(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The warehouse of the run just beyond the bounds, and what it printed."""
    folder = tmp_path_factory.mktemp("beyond")
    printed = succeed("run", *words(folder, beyond=1))
    return folder / "warehouse", printed


def test_beyond_them_every_finding_is_a_line(beyond: tuple[Path, str]) -> None:
    warehouse, printed = beyond
    where = f"warehouse={warehouse}"
    lines = json.loads(succeed("report", where, "--json"))["findings"]
    expected = [(stage, text) for stage, texts in FINDINGS.items() for text in texts]
    for stage, text in expected:
        pattern = re.compile(rf"{stage}\b.*: {re.escape(text)}")
        assert sum(pattern.match(line) is not None for line in lines) == 1, text
    assert len(lines) == len(expected)
    assert json.loads(succeed("status", where, "--json"))["findings"] == lines
    (report,) = warehouse.glob("runs/*/report.md")
    for text in (printed, report.read_text(), succeed("status", where), succeed("report", where)):
        assert all(line in text for line in lines)


def test_the_view_has_the_numbers(beyond: tuple[Path, str]) -> None:
    warehouse, _ = beyond
    rows = sql(warehouse, "from reply_health order by prompt")
    answer, gist, look_up = rows
    counts = ("prompt", "replies", "unread", "illegal", "truncated", "choices", "fallback")
    assert [tuple(row[name] for name in counts) for row in rows] == [
        ("answer", 20, 4, 3, 0, 13, None),
        ("gist", 20, 0, 0, 5, 0, None),
        ("look_up_p", 20, 0, 5, 0, 0, None),
    ]
    common = "I want to look up Page [0]"
    assert (look_up["commonest"], look_up["commonest_share"]) == (common, 0.75)
    assert (look_up["example_share"], answer["example_share"]) == (0.25, 0)
    # Documents 7 to 19 got an option: 10 times C, 3 times A. Right are A 3, B 3, C 3 and D 4 times.
    assert answer["letters"] == pytest.approx({"C": 10 / 13, "A": 3 / 13})
    right = {"A": 3 / 13, "B": 3 / 13, "C": 3 / 13, "D": 4 / 13}
    assert answer["right_letters"] == pytest.approx(right)
    assert (gist["copied_share"], gist["tiny_share"]) == pytest.approx((11 / 20, 3 / 20))
    copied = sql(warehouse, "select copied, count(*) as n from gists group by all")
    assert {row["copied"]: row["n"] for row in copied} == {1.0: 11, 0.0: 3, 0.8: 6}
    (run,) = (file.parent.name for file in warehouse.glob("runs/*/report.md"))
    of_all = sql(warehouse, "from all_reply_health order by prompt")
    assert of_all == [{"run": run, **row} for row in rows]


@pytest.mark.parametrize(
    ("answered_by", "said"),
    [
        ((" m-2024-08-06 ", " m-2024-08-06 "), "m-2024-08-06 (4 calls)"),
        ((None, "m-new"), "m (3 calls), m-new (1 calls)"),
    ],
)
def test_another_model_is_one_line_and_a_mark(
    tmp_path: Path, answered_by: tuple[str | None, str], said: str
) -> None:
    """`answered_by`: of the three gists, and of the answer."""
    write(tmp_path / "corpus", [document(1)], [question(1, of=1)])
    warehouse = f"warehouse={tmp_path / 'w'}"

    def answer(body: dict[str, Any]) -> Answer:
        return Answer(model=answered_by["number 1 about" in body["messages"][-1]["content"]])

    with LoopbackServer(answer=answer) as server:
        words = (
            "run", "run=night", "corpus=tables", f"corpus.path={tmp_path / 'corpus'}", *UNIFORM,
            "rater=none", "methods=gist_only", warehouse, "engine=openai",
            f"engine.base_url={server.url}", "engine.model=m", "engine.sequences=1",
        )  # fmt: skip
        told = gistmill(*words).stderr
        assert gistmill(*words).stderr.count("was answered by") == 1  # nothing is left to do
    line = f"openai:m was answered by {said}, as the server says"
    assert told.count(line) == told.count("answered by") == 1
    assert f"OTHER MODEL: {line}." in succeed("report", warehouse)
    assert f"OTHER MODEL: {line}." in (tmp_path / "w/runs/night/report.md").read_text()
    assert f"\n- {line}\nReplies are" in succeed("cite", warehouse)
    rows = sql(tmp_path / "w", "from answered_by")
    assert {row["answered_by"] for row in rows} == {(name or "m").strip() for name in answered_by}
