"""ReadAgent on the web (appendix D): snippets, gists with their index, look-ups, the next action,
and Mind2Web's measures of steps and episodes, by replies written here."""

import json
from pathlib import Path

import pytest

from tests.support.command import sql, succeed
from tests.support.texts.web_pages import action, episode

pytestmark = pytest.mark.slow

RULES = [
    {"prompt": "gist", "match": "<form", "reply": "A form with From and To."},
    {"prompt": "gist", "match": "Search", "reply": "A button: Search."},
    {"prompt": "gist", "reply": "Links and texts."},
    {"prompt": "look_up_p", "match": "none", "reply": "I want to look up Page [0] for the form"},
    {"prompt": "look_up_p", "reply": "I want to look up Page [1] for the button"},
    {"prompt": "answer", "match": "Bern.*TYPE: Bern", "reply": "Element: 31\nOperation: CLICK"},
    {"prompt": "answer", "match": "HOLD", "reply": "Element: 1\nOperation: CLICK"},
    {"prompt": "answer", "reply": "Element: 12\nOperation: TYPE\nValue: Bern"},
]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three episodes: of the second the first step is done wrongly, of the third the second cannot
    be read."""
    folder = tmp_path_factory.mktemp("web")
    wrong = episode("b", annotation_id="e2", confirmed_task="HOLD a train")
    broken = [action(1, "c"), action(2, "c", pos_candidates=None)]
    torn = episode("c", annotation_id="e3", actions=broken)
    (folder / "test_task.json").write_text(json.dumps([episode(), wrong, torn]))
    (folder / "script.yaml").write_text(json.dumps({"replies": RULES}))
    succeed("run", "corpus=mind2web", f"corpus.path={folder / 'test_task.json'}", "memory=elements",
            "engine=scripted", f"engine.script={folder / 'script.yaml'}", "rater=none", "run=web",
            "methods=readagent_p(max_pages=1),gist_only", "cluster=inline", "max_problem_rate=1",
            f"warehouse={folder / 'w'}")  # fmt: skip
    return folder / "w"


def test_gists_stand_with_their_index_and_the_snippet_in_place(warehouse: Path) -> None:
    (sent,) = sql(
        warehouse,
        """select messages[1].content as text from calls
        where stage = 'answer' and question_id = 'a1' and method like 'readagent_p%'""",
    )
    assert '{"index": 0, "content": "<html' in sent["text"]
    assert '{"index": 1, "content": "Links and texts."}' in sent["text"]
    assert "Name the element by its backend_node_id" in sent["text"]


def test_steps_and_episodes(warehouse: Path) -> None:
    found = sql(warehouse, """select measure, question_id, value from measures
        where method like 'readagent_p%' and measure like 'mind2web%' order by all""")  # fmt: skip
    values = {(row["measure"], row["question_id"]): row["value"] for row in found}
    assert values == {
        ("mind2web_element", "a1"): 100, ("mind2web_element", "b1"): 50,
        ("mind2web_operation_f1", "a1"): 100, ("mind2web_operation_f1", "b1"): 50,
        ("mind2web_step", "a1"): 100, ("mind2web_step", "b1"): 50,
        ("mind2web_element", "c1"): 100, ("mind2web_operation_f1", "c1"): 100,
        ("mind2web_step", "c1"): 100, ("mind2web_episode", "c1"): 0,
        ("mind2web_episode", "a1"): 100, ("mind2web_episode", "b1"): 0,
    }  # fmt: skip
    report = json.loads(succeed("report", "run=web", f"warehouse={warehouse}", "--json"))
    means = next(row["means"] for row in report["rows"] if row["method"].startswith("readagent_p"))
    assert means["mind2web_episode"]["mean"] == pytest.approx(100 / 3)
    assert means["mind2web_step"]["mean"] == pytest.approx(250 / 3)
    assert 0 < means["compression_rate"]["mean"] < 100
