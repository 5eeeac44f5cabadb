"""`shuffle_options`: options in a drawn order, and the chosen one in the question's own."""

from pathlib import Path
from typing import Any

from jobs.graph.resolved_run import read_run
from tests.support.command import sql, succeed

ALWAYS_A = (
    'replies: [{prompt: answer, match: "\\\\(A\\\\)", reply: "Answer: (A)"}, {reply: "A text."}]'
)


def answers(folder: Path, *words: str) -> list[dict[str, Any]]:
    """Those to the demo's questions with options, by a reader that always chooses the first."""
    script = folder / "script.yaml"
    script.write_text(ALWAYS_A)
    run = ["engine=scripted", f"engine.script={script}", "methods=closed_book", "rater=none"]
    warehouse = folder / "-".join(["w", *words]).replace("=", "-")
    succeed("run", *run, *words, f"warehouse={warehouse}", "corpus=demo")
    query = """select question_id, answers.answer_index, options_order, len(options) as num_options
        from answers join questions using (document_id, question_id)
        where len(options) > 0 order by all"""
    return sql(warehouse, query)


def test_the_first_option_shown_is_the_one_chosen(tmp_path: Path) -> None:
    found = answers(tmp_path, "shuffle_options=true")
    assert len(found) == 15
    for row in found:
        assert sorted(row["options_order"]) == [*range(row["num_options"])]
        assert row["answer_index"] == row["options_order"][0]
    assert len({tuple(row["options_order"]) for row in found}) > 5
    assert answers(tmp_path, "shuffle_options=true", "questions_per_unit=1") == found
    assert answers(tmp_path, "shuffle_options=true", "engine.seed=1") != found


def test_without_it_options_stand_as_they_are_and_steps_keep_their_ids(tmp_path: Path) -> None:
    assert {(row["answer_index"], tuple(row["options_order"])) for row in answers(tmp_path)} == {
        (0, ())
    }
    ids = [[step.id for step in read_run([*words, "methods=gist_only,closed_book"]).steps]
           for words in ([], ["engine.seed=1"], ["shuffle_options=true"])]  # fmt: skip
    assert ids[0] == ids[1]
    assert {*ids[2]} - {*ids[0]} == {one for one in ids[2] if one.startswith(("answer", "score"))
                                     or one.startswith("rate")}  # fmt: skip
