"""ReadAgent on the web (appendix D): snippets, gists with their index, look-ups, the next
action, and Mind2Web's metrics, on handmade pages with scripted replies."""

import asyncio
import json
import subprocess
import sys
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import gistmill
from gistmill.plugin import Document, UnitRows

PLUGIN = Path(__file__).parent
PAGES = (  # of a site that sells tickets, each with two snippets five levels below the root
    '<html backend_node_id="1"><body backend_node_id="2"><div><div><div backend_node_id="5">'
    '<div backend_node_id="3"><form backend_node_id="10">\n<label>From</label>'
    '<input backend_node_id="11" name="from"/><label>To</label>'
    '<input backend_node_id="12" name="to"/></form></div>'
    '<div backend_node_id="4"><a backend_node_id="20">Help</a><br>'
    '<a backend_node_id="21">Offers to Rome</a></div></div></div></div></body></html>',
    '<html backend_node_id="1"><body backend_node_id="2"><div><div><div backend_node_id="5">'
    '<div backend_node_id="3"><p>Zurich to Bern, 2 adults</p></div>'
    '<div backend_node_id="4"><button backend_node_id="31"><span backend_node_id="32">Search'
    "</span></button></div></div></div></div></body></html>",
)
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


def action(number: int, prefix: str = "a", **change: Any) -> dict[str, Any]:
    """Action 1 types a place, action 2 clicks a button; two elements count as right there."""
    targets = [["12"], ["31", "32"]][number - 1]
    operation = [{"op": "TYPE", "value": "Bern"}, {"op": "CLICK", "value": ""}][number - 1]
    return {
        "action_uid": f"{prefix}{number}",
        "cleaned_html": PAGES[number - 1],
        "operation": operation,
        "pos_candidates": [{"tag": "x", "backend_node_id": name} for name in targets],
        **change,
    }


def episode(prefix: str = "a", **change: Any) -> dict[str, Any]:
    return {
        "annotation_id": "e1",
        "website": "trains",
        "domain": "Travel",
        "confirmed_task": "Book a train to Bern for 2 adults",
        "action_reprs": ["[textbox] To -> TYPE: Bern", "[button] Search -> CLICK"],
        "actions": [action(1, prefix), action(2, prefix)],
        **change,
    }


def module(name: str) -> Any:
    gistmill.config(f"plugins={PLUGIN}")
    return import_module(f"gistmill_plugins.mind2web.{name}")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> gistmill.RunResult:
    """A run of four episodes: the first is right, the second has a wrong first step, the third
    an unreadable second step; the fourth cannot be read at all."""
    folder = tmp_path_factory.mktemp("web")
    wrong = episode("b", annotation_id="e2", confirmed_task="HOLD a train")
    broken = [action(1, "c"), action(2, "c", pos_candidates=None)]
    torn = episode("c", annotation_id="e3", actions=broken)
    episodes = [episode(), wrong, torn, episode("d", action_reprs=[])]
    (folder / "test_task").mkdir()
    (folder / "test_task" / "test_task_0.json").write_text(json.dumps(episodes))
    (folder / "script.yaml").write_text(json.dumps({"replies": RULES}))
    return gistmill.run(
        f"plugins={PLUGIN}", "corpus=mind2web", f"corpus.path={folder}", "corpus.split=test_task",
        "memory=elements", "engine=scripted", f"engine.script={folder / 'script.yaml'}",
        "name=readagent_table9", "rater=none", "methods=readagent_p(max_pages=1),gist_only",
        "cluster=inline", "max_problem_rate=1", f"warehouse={folder / 'w'}",
    )  # fmt: skip


def test_every_action_is_a_page_and_a_question(done: gistmill.RunResult) -> None:
    rows = done.connect().execute(
        """select question, q."references", question_type, text, d.metadata, evidence
        from questions q join documents d using (document_id)
        where question_id in ('a1', 'a2') order by question_id"""
    )
    first, second = rows.fetchall()
    assert first[:4] == (
        "Book a train to Bern for 2 adults\nDone so far:\n- none\nWhat is the next action?",
        ["Element: 12\nOperation: TYPE\nValue: Bern"], "TYPE", PAGES[0],
    )  # fmt: skip
    assert second[0].split("\n")[2] == "- [textbox] To -> TYPE: Bern"
    assert second[1] == ["Element: 31\nOperation: CLICK", "Element: 32\nOperation: CLICK"]
    assert json.loads(second[4]) == {"annotation_id": "e1", "website": "trains", "domain": "Travel",
                                     "step": 1, "steps": 2}  # fmt: skip
    tags = [[text[e["start_char"] : e["end_char"]] for e in evidence]
            for *_, text, _, evidence in (first, second)]  # fmt: skip
    assert tags == [['<input backend_node_id="12" name="to"/>'],
                    ['<button backend_node_id="31"><span backend_node_id="32">']]  # fmt: skip
    bad = "select document_id, detail from documents where problem = 'bad_input' order by 1"
    (step, why), (whole, why_not) = done.connect().execute(bad).fetchall()
    assert step.endswith("actions[1]") and "`pos_candidates` is no list" in why
    assert whole == "test_task_0.json:4" and "no `action_reprs` for each" in why_not


def test_gists_stand_with_their_index_and_the_snippet_in_place(done: gistmill.RunResult) -> None:
    (sent,) = done.connect().execute(
        """select messages[1].content from calls
        where stage = 'answer' and question_id = 'a1' and method like 'readagent_p%'"""
    ).fetchone()  # fmt: skip
    assert '{"index": 0, "content": "<html' in sent
    assert '{"index": 1, "content": "Links and texts."}' in sent


def test_means_are_over_episodes(done: gistmill.RunResult) -> None:
    found = (
        done.connect()
        .execute("""select measure, question_id, value from measures
        where method like 'readagent_p%' and measure like 'mind2web%'""")
        .fetchall()
    )
    values = {(measure, question_id): value for measure, question_id, value in found}
    assert values == {
        ("mind2web_element", "a1"): 100, ("mind2web_element", "b1"): 50,
        ("mind2web_operation_f1", "a1"): 100, ("mind2web_operation_f1", "b1"): 50,
        ("mind2web_step", "a1"): 100, ("mind2web_step", "b1"): 50,
        ("mind2web_element", "c1"): 100, ("mind2web_operation_f1", "c1"): 100,
        ("mind2web_step", "c1"): 100, ("mind2web_episode", "c1"): 0,
        ("mind2web_episode", "a1"): 100, ("mind2web_episode", "b1"): 0,
    }  # fmt: skip
    (means,) = (row.means for row in done.report.rows if row.method.startswith("readagent_p"))
    assert means["mind2web_episode"].mean == pytest.approx(100 / 3)
    assert means["mind2web_step"].mean == pytest.approx(250 / 3)


def test_the_experiment_is_of_these_pages() -> None:
    words = (f"plugins={PLUGIN}", "experiment=readagent_table9", "corpus.path=x")
    config = gistmill.config(*words)
    found = (config.corpus.format, config.memory.name, config.family, config.reply_format)
    assert found == ("mind2web", "elements", "readagent_mind2web", "free")


def test_papers_names_and_figures_are_the_plugins(done: gistmill.RunResult) -> None:
    def shown(*words: str) -> str:
        words = (*words, f"warehouse={done.warehouse}")
        command = [sys.executable, "-m", "gistmill", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert "2306.06070" in shown("cite")
    assert "Episode SR" in shown("report", "names=paper")
    row = next(line for line in shown("report", "--published").split("\n") if "GistMem" in line)
    assert " 43.1 |" in row  # operation F1 of table 9


@pytest.mark.parametrize(
    ("reply", "element", "f1", "step"),
    [
        ("Element: 12\nOperation: TYPE\nValue: two adults", 100, 100, 100),
        ("Element: 12\nOperation: CLICK", 100, 0, 0),
        ("Element: 12\nOperation: TYPE\nValue: adults", 100, 80, 0),  # 2 of 2 and of 3 words
        ("Element: 13\nOperation: TYPE\nValue: adults two", 0, 100, 0),  # sets of words
        ('**Element:** 12\n- Operation: `type`\nvalue: "two adults"', 100, 100, 100),
        ("Element: 9\nNo, wait.\nElement: 12\nOperation: TYPE", 100, 50, 0),
        ("I would click the button.", 0, 0, 0),
    ],
)
def test_metrics_by_hand(reply: str, element: float, f1: float, step: float) -> None:
    own, gold = module("web_metrics"), "Element: 12\nOperation: TYPE\nValue: two adults"
    found = [own.element_accuracy(reply, gold), own.operation_f1(reply, gold),
             own.step_success(reply, gold), own.episode_success(reply, gold)]  # fmt: skip
    assert found == pytest.approx([element, f1, step, step])
    assert own.operation_f1("Element: none\nOperation: CLICK", "Element: \nOperation: CLICK") == 0


def starts(text: str, depth: int) -> list[str]:
    """The elements that pages begin with, without the first."""
    stage = module("element_pages").PaginateElements(depth=depth)
    rows = UnitRows(document=Document(document_id="d", text=text))
    pages = asyncio.run(stage.run(rows, None))
    ends = [*accumulate(len(page.text) for page in pages)]
    assert "".join(page.text for page in pages) == text and ends[-1] == len(text)
    return [page.text.split(">")[0] + ">" for page in pages[1:]]


@pytest.mark.parametrize("text", PAGES)
@pytest.mark.parametrize("depth", range(1, 9))
def test_a_page_begins_at_each_element_of_the_depth(text: str, depth: int) -> None:
    """Compares with an XML parser's tree: all is XML except <br>."""
    level = [ET.fromstring(text.replace("<br>", "<br/>"))]
    for _ in range(depth):
        level = [child for element in level for child in element]
    wanted = [element.get("backend_node_id", element.tag) for element in level]
    found = starts(text, depth)
    assert len(found) == max(0, len(wanted) - 1)
    assert all(name in tag for tag, name in zip(found, wanted[1:], strict=True))


def test_pages_of_no_xml() -> None:
    """An unclosed element is closed by its parent, as in browsers; declarations are text."""
    assert starts("<a><b><c></b></x><b>two</b></a>", 1) == ["<b>"]
    assert starts("no tag at all", 3) == []
    for odd in ("<![1]>", "<![foo[bar]]>", "<![CDATA[x]]>", "<!x>", "<![", "<!"):
        assert starts(f"<a><b>{odd}</b><b>two</b></a>", 1) == ["<b>"] * odd.endswith(">"), odd
