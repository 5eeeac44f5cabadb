"""`gistmill export hub`: a folder that `datasets` loads, with a card that says what it is."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import load_dataset

from jobs.export.export_hub import _licence
from tests.support.command import refused, sql, succeed
from tests.support.runs.hand_run import TEXTS, HandRun

pytestmark = pytest.mark.slow
_ROW = "select count(*) as rows from"


@pytest.fixture(scope="module")
def made(hand: HandRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "pushed"
    succeed("export", "hub", *words(hand), f"to={folder}", "licence=cc-by-4.0")
    return folder


def words(hand: HandRun) -> list[str]:
    return [f"warehouse={hand.warehouse}", "run=hand"]


def card(folder: Path) -> tuple[dict[str, Any], str]:
    """The settings and the text of a dataset card."""
    _, settings, text = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(settings), text


def test_every_table_is_loaded(hand: HandRun, made: Path, tmp_path: Path) -> None:
    settings, _ = card(made)
    names = [config["config_name"] for config in settings["configs"]]
    assert {"answers", "documents", "questions", "ratings", "scores", "calls"} <= {*names}
    for name in names:
        loaded = load_dataset(str(made), name, cache_dir=str(tmp_path))["train"]
        (ours,) = sql(hand.warehouse, f"{_ROW} {name}", "run=hand")
        assert loaded.num_rows == ours["rows"] > 0, name
    answers = load_dataset(str(made), "answers", split="train", cache_dir=str(tmp_path))
    query = "select question_id, method, answer, answer_index, page_indexes from answers"
    rows = sql(hand.warehouse, query, "run=hand")
    own = [{key: row[key] for key in rows[0]} for row in answers]
    assert sorted(own, key=str) == sorted(rows, key=str)


@pytest.mark.parametrize(
    ("stated", "licence"),
    [(None, "unknown"), ({}, "unknown"), ({"a": "CC BY 4.0"}, "cc-by-4.0"),
     ({"a": "MIT", "b": "MIT"}, "mit"), ({"a": "MIT", "b": "Apache-2.0"}, "unknown"),
     ({"a": "MIT; the datasets in it have their own"}, "unknown")],
)  # fmt: skip
def test_the_licence_that_a_run_states(stated: dict[str, str] | None, licence: str) -> None:
    assert _licence(stated) == licence


def test_texts_only_if_they_are_asked_for(hand: HandRun, made: Path, tmp_path: Path) -> None:
    """The longest text has 150 words; a page of it is in no file without --texts."""
    page = TEXTS["ledger"].split("\n\n")[2]
    said = "documents: text"
    _, text = card(made)
    assert said.replace("documents", "`documents`") in text and "may quote it" in text
    assert not holding(made, page, tmp_path)
    whole = tmp_path / "whole"
    succeed("export", "hub", *words(hand), f"to={whole}", "--texts")
    assert holding(whole, page, tmp_path) >= {"documents", "pages"}
    assert "left out" not in card(whole)[1]


def holding(folder: Path, text: str, cache: Path) -> set[str]:
    """The tables with a row that has this text."""
    found = set()
    for file in (folder / "data").glob("*.parquet"):
        rows = load_dataset("parquet", data_files=str(file), split="train", cache_dir=str(cache))
        if any(text in json.dumps(row, ensure_ascii=False, default=str) for row in rows):
            found.add(file.stem)
    return found


def test_the_card_says_how_it_was_made(made: Path) -> None:
    settings, text = card(made)
    assert settings["license"] == "cc-by-4.0" and settings["size_categories"] == ["n<1K"]
    assert settings["task_categories"] == ["question-answering"]
    assert text.startswith("\n# gistmill run hand on ")
    assert "## How it was made" in text and "```bibtex\n@software{gistmill," in text
    assert "| answers" in text and "A method's answer to one question" in text


def test_chosen_tables_and_mistakes(hand: HandRun, made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "some"
    succeed("export", "hub", *words(hand), f"to={folder}", "tables=scores, answers")
    assert sorted(file.name for file in (folder / "data").iterdir()) == [
        "answers.parquet", "scores.parquet",
    ]  # fmt: skip
    assert card(folder)[0]["license"] == "unknown"
    again = ["export", "hub", *words(hand), f"to={made}"]
    assert refused(*again).endswith("exists already; name another folder, or add --force")
    other = [*again[:-1], f"to={tmp_path / 'other'}", "tables=page_texts"]
    assert refused(*other).startswith("tables=page_texts: no such table; nearest: ")
    assert not (tmp_path / "other").exists()
    wrong = [*again[:-1], f"to={folder}", "tables=nosuch", "--force"]
    assert refused(*wrong).startswith("tables=nosuch: no such table")
    assert len([*(folder / "data").iterdir()]) == 2, "what was to be replaced is there"
    assert len([*tmp_path.iterdir()]) == 1
    succeed(*again[:-1], f"to={folder}", "tables=scores,scores", "--force")
    assert [config["config_name"] for config in card(folder)[0]["configs"]] == ["scores"]
    assert len([*tmp_path.iterdir()]) == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    assert refused(*again[:-1], f"to={tmp_path / 'mine'}", "--force").endswith(
        "is no export of gistmill; name another folder"
    )
