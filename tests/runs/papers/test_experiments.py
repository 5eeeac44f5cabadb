"""Every experiment that ships: it composes, says what it is of, and runs whole on two documents."""

import re
from pathlib import Path

import pytest

from jobs.graph.resolved_run import ResolvedRun, read_run
from pipeline.core.settings import CONF
from tests.support.command import sql_values, succeed
from tests.support.engines.embedding import minilm
from tests.support.texts.paper_corpora import corpus_path

FILES = {file.stem: file for file in sorted((CONF / "experiment").glob("*.yaml"))}
OWN_FILES = ("ask", "demo")  # of files that a command names, or that ship
CORPUS = re.compile(r"override /corpus: (\w+)")
TITLES = {title.lower(): title for title in ("ReadAgent", "MemWalker", "MemoRAG", "LongMemEval")}
OF_PAPERS = re.compile(rf"({'|'.join(TITLES)})_(table|fig)(\d+)(_\w+)?")
OTHER_FAMILIES = (("memorag", "longbench"), ("memorag", "govreport"))
NEEDS_EMBEDDER = [name for name, file in FILES.items() if "embedder:" in file.read_text()]


def resolved(name: str) -> ResolvedRun:
    return read_run([f"experiment={name}", "corpus.path=."])


@pytest.mark.parametrize("name", [name for name in FILES if name not in OWN_FILES])
def test_it_composes_under_its_name_and_says_what_it_is_of(name: str) -> None:
    run = resolved(name)
    assert run.config.name == name and run.methods
    said = FILES[name].read_text(encoding="utf-8").split("\n")[1]
    if found := OF_PAPERS.fullmatch(name):
        paper, kind, number, _ = found.groups()
        what = {"table": "table", "fig": "figure"}[kind]
        assert said.startswith(f"# {TITLES[paper]} {what} {number}"), said
        family = run.family.name
        assert family.startswith(paper) or (paper, family) in OTHER_FAMILIES


def test_page_sizes_of_table_6_are_the_papers() -> None:
    run = resolved("readagent_table6")
    pages = [step.settings for step in run.steps if step.table == "pages"]
    sizes = {(of_step["min_words"], of_step["max_words"]) for of_step in pages}
    assert sizes == {(187, 400), (280, 600), (373, 800), (560, 1200)}
    assert len(run.methods) == 8


def ran(name: str, folder: Path, *words: str) -> None:
    """Each method answers all questions of two documents."""
    (corpus,) = CORPUS.findall(FILES[name].read_text(encoding="utf-8"))
    path = corpus_path(corpus, folder)
    words = (*words, "limit=2", "rater=none", "cluster=inline", "max_problem_rate=1", "run=r")
    succeed("run", f"experiment={name}", f"corpus.path={path}", f"warehouse={folder / 'w'}", *words)
    rows = sql_values(
        folder / "w",
        """select method, count(*) = (select count(*) from questions),
          bool_or(answer is not null or skipped) from answers group by method""",
    )
    assert {*rows} == {(method.name, True, True) for method in resolved(name).methods}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in FILES if name not in (*NEEDS_EMBEDDER, *OWN_FILES)]
)
def test_it_runs_on_two_documents(name: str, tmp_path: Path) -> None:
    ran(name, tmp_path)


@pytest.mark.dense
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NEEDS_EMBEDDER)
def test_with_an_embedder_it_runs_on_two_documents(name: str, tmp_path: Path) -> None:
    ran(name, tmp_path, f"embedder.model={minilm()}")
