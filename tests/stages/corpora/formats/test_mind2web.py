"""Mind2Web: episodes as pages and questions, by hand-made pages in the documented format."""

import json
from pathlib import Path
from typing import Any

import pytest

from stages.corpora import Loaded
from tests.support.texts.loading import details, good, loaded
from tests.support.texts.web_pages import PAGES, action, episode


def read(folder: Path, *episodes: Any) -> list[Loaded]:
    path = folder / "test_task_0.json"
    path.write_text(json.dumps(episodes), encoding="utf-8")
    return loaded(path, "mind2web")


def test_every_action_is_a_page_and_a_question(tmp_path: Path) -> None:
    first, second = read(tmp_path, episode())
    assert first.document.text == PAGES[0] and second.document.text == PAGES[1]
    assert first.document.title == "trains"
    about = json.loads(second.document.metadata)
    assert about == {"annotation_id": "e1", "website": "trains", "domain": "Travel", "step": 1,
                     "steps": 2}  # fmt: skip
    (one,), (two,) = first.questions, second.questions
    assert one.question == (
        "Book a train to Bern for 2 adults\nDone so far:\n- none\nWhat is the next action?"
    )
    assert two.question.split("\n")[2] == "- [textbox] To -> TYPE: Bern"
    assert one.references == ("Element: 12\nOperation: TYPE\nValue: Bern",)
    assert two.references == (
        "Element: 31\nOperation: CLICK", "Element: 32\nOperation: CLICK",
    )  # fmt: skip
    assert (one.question_type, two.question_type) == ("TYPE", "CLICK")
    assert (one.question_id, two.document_id) == ("a1", "a2")


def test_the_evidence_is_the_elements_tags(tmp_path: Path) -> None:
    for item in read(tmp_path, episode()):
        text, (question,) = item.document.text, item.questions
        tags = [text[span.start_char : span.end_char] for span in question.evidence]
        assert (
            tags
            == {
                "a1": ['<input backend_node_id="12" name="to"/>'],
                "a2": ['<button backend_node_id="31"><span backend_node_id="32">'],
            }[question.question_id]
        )


def test_an_action_without_an_element_can_only_fail(tmp_path: Path) -> None:
    item, _ = read(tmp_path, episode(actions=[action(1, pos_candidates=[]), action(2)]))
    (question,) = item.questions
    assert question.references == ("Element: \nOperation: TYPE\nValue: Bern",)
    assert question.evidence == ()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"annotation_id": None}, "no `annotation_id`; add it"),
    ({"actions": None}, "`actions` is null, not a list"),
    ({"action_reprs": ["one"]}, "2 `actions`, 1 `action_reprs`; fix them"),
    ({"confirmed_task": None}, "no `confirmed_task`; add it"),
]


@pytest.mark.parametrize(("change", "words"), BAD)
def test_a_bad_episode_is_one_bad_row(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    corpus = read(tmp_path, episode(**change), episode(annotation_id="e2", prefix="b"))
    assert len(corpus) == 3 and words in details(corpus)[0]
    assert [len(good(item.questions)) for item in corpus] == [0, 1, 1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cleaned_html": None}, "no `cleaned_html`; add it"),
        ({"cleaned_html": " "}, "the text has no words"),
        ({"operation": "CLICK"}, "operation"),
        ({"pos_candidates": [1]}, "`pos_candidates` is not a list of objects; fix it"),
        ({"pos_candidates": None}, "`pos_candidates` is null, not a list"),
    ],
)
def test_a_bad_action_is_a_bad_row_and_the_others_stay(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    corpus = read(tmp_path, episode(actions=[action(1, **change), action(2)]))
    assert any(words in detail for detail in details(corpus))
    assert good(corpus[1].questions) and corpus[1].document.problem is None
