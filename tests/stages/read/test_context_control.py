"""Books that are too long for the context: no question of theirs ends as context_overflow."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.command import WHOLE, refused, sql, succeed
from tests.support.own_methods import methods
from tests.support.texts.loading import loaded
from tests.support.texts.small_corpus import UNIFORM, document, question, write

METHODS = "methods=gist_only,readagent_p(max_pages=3),readagent_s(max_pages=2),bm25(top_k=4)"
BOTH = """select memory, count(*) as pages, sum(num_words)::bigint as words
    from gists group by memory"""
Words = tuple[str, ...]


@pytest.mark.slow
def test_a_book_of_300000_words_fits_8192_tokens(tmp_path: Path) -> None:
    """The seven real books in a row are one document, with some questions."""
    stories = loaded(WHOLE / "narrativeqa", "narrativeqa")
    text = "\n\n".join(item.document.text.strip() for item in stories)
    assert len(text.split()) > 300_000
    asked = [
        {"document_id": "long", "question_id": f"q{n}", "question": f"Who is {name}?",
         "references": ["a man"]}
        for n, name in enumerate(("the captain", "the vicar", "her brother", "the old servant"))
    ]  # fmt: skip
    folder = tmp_path / "corpus"
    folder.mkdir()
    write(folder, [{"document_id": "long", "text": text}], asked)
    succeed("run", "corpus=tables", f"corpus.path={folder}", "family=narrativeqa_gutenberg",
            "rater=none", "engine.context_tokens=8192", METHODS, f"warehouse={tmp_path}", "run=r",
            "memory=fitted")  # fmt: skip
    problems = sql(tmp_path, "select problem, count(*) as n from answers group by 1")
    assert problems == [{"problem": None, "n": 16}]
    found = {row["memory"]: row for row in sql(tmp_path, BOTH)}
    before, after = found.pop("shared"), found.pop("paginate(kind=merged)")
    assert found == {}
    assert after["pages"] < before["pages"]
    assert after["words"] < 2_500 < 8_192 < before["words"]
    (longest,) = sql(tmp_path, """
        select max(prompt_tokens + case stage when 'look_up' then 128 else 512 end) as most
        from calls where stage in ('look_up', 'answer')""")  # fmt: skip
    assert longest["most"] <= 8192


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Words:
    """Two documents of three pages."""
    folder = tmp_path_factory.mktemp("small")
    write(folder, [document(1), document(2)], [question(1, of=1), question(2, of=2)])
    return ("corpus=tables", f"corpus.path={folder}", "rater=none")


@pytest.mark.slow
def test_gists_for_a_task_are_a_memory_of_their_own(tmp_path: Path, small: Words) -> None:
    tasks = ("Find the mills.", "Count the pages.")
    conditional = [f'readagent_p_conditional(task="{task}",max_pages=1)' for task in tasks]
    words = (*small, *UNIFORM, f"warehouse={tmp_path}", "run=r")
    succeed("run", *words, f"methods=readagent_p(max_pages=1),{','.join(conditional)}")
    rows: list[dict[str, Any]] = sql(
        tmp_path, "select memory, prompt, count(*) as n from calls "
        "join steps using (step_id) where calls.stage = 'gist' group by all",
    )  # fmt: skip
    assert {(row["memory"], row["prompt"]): row["n"] for row in rows} == {
        ("shared", "gist"): 6,
        **{(f"paginate(kind=copied,purpose={task})", "gist_for_task"): 6 for task in tasks},
    }
    joined = "select count(*) as n from gists join pages using (memory, document_id, page_index)"
    assert sql(tmp_path, joined) == [{"n": 18}]


def test_a_second_step_for_one_memorys_gists_is_refused(tmp_path: Path, small: Words) -> None:
    """Its rows would double every join."""
    text = (
        "arguments: {}\nstages:\n  gist: {kind: conditional, task: Find it}\n"
        "  look_up: {kind: none}\n  answer: {kind: memory}\n"
    )
    own = methods(tmp_path, twice=text)
    line = refused("run", *small, own, "methods=gist_only,twice", f"warehouse={tmp_path}")
    assert "twice.yaml: gist: gists of the memory shared are made already" in line
    assert "paginate (kind copied)" in line
