"""Answers in the logs of other evaluation programs, and whose questions they are found to be.

The lines of lm-evaluation-harness and of HELMET are written by hand, after `evaluation_tracker.py`
and `eval.py` of their repositories: both need torch. inspect_ai's log is also made by itself.
"""

import json
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import UsageError
from pipeline.core.rows import Document, Question
from stages.read.evaluation_logs import LogEntry
from stages.read.imported_answers import ImportedAnswer
from stages.read.matched_answers import matched
from stages.read.prediction_file import read_predictions

STORY, MEETING = "Once a miller lived by the river.", "A: The budget is short. B: I know."
CORPUS = [
    (
        Document(document_id="story", text=STORY),
        (
            Question(document_id="story", question_id="s1", question="Who lived there?"),
            Question(document_id="story", question_id="s2", question="What is it about?"),
        ),
    ),
    (
        Document(document_id="meeting", text=MEETING),
        (
            Question(document_id="meeting", question_id="m1", question="What is it about?"),
            Question(document_id="meeting", question_id="2", question="Who is short of money?"),
        ),
    ),
]


def found(file: Path) -> Any:
    """The answers of a log to the questions of the corpus."""
    entries = read_predictions(str(file))
    assert not isinstance(entries, dict)
    assert isinstance(entries, Sequence) and isinstance(entries[0], LogEntry)
    return matched(entries, CORPUS)


def harness_line(number: int, doc: dict[str, Any], prompt: str, replies: Any) -> dict[str, Any]:
    return {
        "doc_id": number, "doc": doc, "target": "x", "arguments":
        {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["\n"]}}},
        "resps": [["raw"]], "filtered_resps": replies, "filter": "none", "metrics": ["f1"],
        "doc_hash": "0", "prompt_hash": "1", "target_hash": "2", "f1": 0.5,
    }  # fmt: skip


def harness_log(folder: Path, *rows: dict[str, Any]) -> Path:
    file = folder / "samples_narrativeqa_2026-01-01T00-00-00.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_samples_of_lm_evaluation_harness(tmp_path: Path) -> None:
    """By an id, by the question's text, and by the document that the prompt shows."""
    log = harness_log(
        tmp_path,
        harness_line(0, {"id": "s1"}, "", ["A miller."]),
        harness_line(1, {"question": "Who is  short of money?"}, "", [["B"]]),
        harness_line(2, {"question": "What is it about?"}, f"Read:\n{MEETING}\nQ: ...", ["Money."]),
    )
    assert found(log) == {"s1": "A miller.", "2": "B", "m1": "Money."}
    one = harness_log(tmp_path, harness_line(0, {"id": "s1"}, "", ["A miller."]))
    assert found(one) == {"s1": "A miller."}, "a file of one line is no object of answers by id"


def test_the_likeliest_option_of_lm_evaluation_harness(tmp_path: Path) -> None:
    """Pairs of log-likelihood and whether it is greedy, as texts: -0.5 is the highest."""
    replies = [["-3.0", "False"], ["-0.5", "True"], ["-11.0", "False"]]
    assert found(harness_log(tmp_path, harness_line(0, {"id": "s1"}, "", replies))) == {"s1": "(B)"}


def test_results_of_helmet(tmp_path: Path) -> None:
    """The parsed output, else the whole one; NaN is no mistake in such a file."""
    rows = [
        {"question": "Who lived there?", "answer": ["x"], "output": "Answer: Hans",
         "parsed_output": "Hans", "input_len": 9, "f1": 0.0},
        {"id": "2", "question": "Who is short of money?", "output": "B", "parsed_output": None},
        {"question": "What is it about?", "input_text": f"{STORY}\nQuestion:", "output": "A mill",
         "parsed_output": ""},
    ]  # fmt: skip
    log = {"args": {}, "data": rows, "metrics": {}, "averaged_metrics": {"f1": float("nan")}}
    file = tmp_path / "narrativeqa_eval_in131072.json"
    file.write_text(json.dumps(log, indent=4))
    assert found(file) == {"s1": "Hans", "2": "B", "s2": "A mill"}


def inspect_sample(name: Any, asked: Any, reply: Any, **metadata: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply}
    return {"id": name, "epoch": 1, "input": asked, "target": "x", "metadata": metadata,
            "output": {"model": "m", "choices": [{"message": message}]}}  # fmt: skip


def test_a_log_of_inspect_as_json(tmp_path: Path) -> None:
    """inspect_ai numbers samples without ids: 2 is no id of the question with another text."""
    messages = [{"role": "user", "content": "Who is short of money?"}]
    parts = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "A miller."}]
    samples = [
        inspect_sample(1, messages, "B"),
        inspect_sample(2, "Who lived there?", parts),
        inspect_sample(3, "What is it about?", "A mill", document_id="story"),
        inspect_sample(4, "Read and answer.", "", question_id="m1"),
    ]
    file = tmp_path / "log.json"
    file.write_text(json.dumps({"version": 2, "eval": {}, "samples": samples}))
    assert found(file) == {"2": "B", "s1": "A miller.", "s2": "A mill", "m1": None}


@pytest.mark.parametrize(
    ("doc", "says"),
    [
        ({"id": "zz"}, "1 of 2 answers are to no question of the corpus, .* the first to 'zz'; "),
        ({"question": "Why?"}, "the first to 'Why[?]'; "),
        ({"question": "What is it about?"}, "or to one of several with the same text"),
        ({"id": "s1"}, "the question 's1' is answered twice, first in samples_.*jsonl:1; keep one"),
        ({}, "the first to nothing; add its question_id"),
    ],
)
def test_answers_that_are_to_no_question(tmp_path: Path, doc: dict[str, Any], says: str) -> None:
    first = harness_line(0, {"id": "s1"}, "", ["a"])
    log = harness_log(tmp_path, first, harness_line(1, doc, "", ["b"]))
    with pytest.raises(UsageError, match=rf"^samples_.*jsonl:2: .*{says}"):
        found(log)


def test_a_line_that_is_damaged(tmp_path: Path) -> None:
    log = harness_log(tmp_path, harness_line(0, {"id": "s1"}, "", ["a"]))
    log.write_text(log.read_text() + '{"doc_id"\n')
    with pytest.raises(UsageError, match=r"jsonl:2: not JSON"):
        read_predictions(str(log))


def test_an_eval_log_without_inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    (tmp_path / "a.eval").write_bytes(b"PK")
    with pytest.raises(UsageError, match=r"\.eval needs inspect_ai; pip install 'gistmill\[inspec"):
        read_predictions(str(tmp_path / "a.eval"))


def test_the_stage_asks_for_the_corpus_only_for_a_log(tmp_path: Path) -> None:
    log = harness_log(tmp_path, harness_line(0, {"question": "Who lived there?"}, "", ["Hans"]))
    stage = ImportedAnswer(file=str(log))
    stage.refuse_unusable("theirs")
    stage.match_questions(lambda: CORPUS)
    log.unlink()
    assert pickle.loads(pickle.dumps(stage)).inputs_per_question() == {"s1": "Hans"}
    (tmp_path / "a.json").write_text('{"s1": "Hans"}')
    own = ImportedAnswer(file=str(tmp_path / "a.json"))
    own.match_questions(lambda: pytest.fail("the corpus is not needed"))
    assert own.inputs_per_question() == {"s1": "Hans"}


@pytest.mark.interchange
@pytest.mark.parametrize("form", ["eval", "json"])
def test_a_log_that_inspect_itself_writes(tmp_path: Path, form: str) -> None:
    """No model is asked: even inspect_ai's mock of one fetches a tokenizer."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.solver import solver

    def scripted() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            state.output = ModelOutput.from_content("mockllm/model", state.metadata["reply"])
            return state

        return solve

    asked = [
        Sample(input="Who lived there?", target="x", id="any", metadata={"reply": "A miller."}),
        Sample(input="What is it about?", id="other",
               metadata={"reply": "Money.", "document_id": "meeting"}),
    ]  # fmt: skip
    task = Task(asked, solver=solver(scripted)())
    (log,) = eval(task, model="mockllm/model", log_dir=str(tmp_path), log_format=form,
                  display="none")  # fmt: skip
    assert log.status == "success"
    (file,) = tmp_path.glob(f"*.{form}")
    assert found(file) == {"s1": "A miller.", "m1": "Money."}


@pytest.mark.interchange
def test_an_eval_log_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.eval").write_bytes(b"no archive at all")
    with pytest.raises(UsageError, match=r"a.eval: no log of inspect_ai \(.*\); write it again"):
        read_predictions(str(tmp_path / "a.eval"))
