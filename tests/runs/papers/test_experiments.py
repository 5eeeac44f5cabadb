"""Every experiment that ships: it composes, and runs whole on two documents."""

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
OF_PAPERS = re.compile(r"(readagent|memwalker|memorag|longmemeval)_(table|fig)\d+(_\w+)?")
OTHER_FAMILIES = (("memorag", "longbench"), ("memorag", "govreport"))
NEEDS_EMBEDDER = [name for name, file in FILES.items() if "embedder:" in file.read_text()]


def resolved(name: str) -> ResolvedRun:
    return read_run([f"experiment={name}", "corpus.path=."])


@pytest.mark.parametrize("name", [name for name in FILES if name not in OWN_FILES])
def test_it_composes_under_its_name_with_the_papers_prompts(name: str) -> None:
    run = resolved(name)
    assert run.config.name == name and run.methods
    if found := OF_PAPERS.fullmatch(name):
        paper, family = found[1], run.family.name
        assert family.startswith(paper) or (paper, family) in OTHER_FAMILIES


def test_page_sizes_of_table_6_are_the_papers() -> None:
    run = resolved("readagent_table6")
    pages = [step.settings for step in run.steps if step.table == "pages"]
    sizes = {(of_step["min_words"], of_step["max_words"]) for of_step in pages}
    assert sizes == {(187, 400), (280, 600), (373, 800), (560, 1200)}
    assert len(run.methods) == 8


DENSE = [pytest.mark.dense, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=DENSE if name in NEEDS_EMBEDDER else pytest.mark.slow)
     for name in FILES if name not in OWN_FILES],
)  # fmt: skip
def test_it_runs_on_two_documents(name: str, tmp_path: Path) -> None:
    """Each method answers all questions."""
    (corpus,) = CORPUS.findall(FILES[name].read_text(encoding="utf-8"))
    words = [f"embedder.model={minilm()}"] if name in NEEDS_EMBEDDER else []
    succeed(
        "run", f"experiment={name}", f"corpus.path={corpus_path(corpus, tmp_path)}", *words,
        f"warehouse={tmp_path / 'w'}", "limit=2", "rater=none", "max_problem_rate=1", "run=r",
    )  # fmt: skip
    rows = sql_values(
        tmp_path / "w",
        """select method, count(*) = (select count(*) from questions),
          bool_or(answer is not null or skipped) from answers group by method""",
    )
    assert {*rows} == {(method.name, True, True) for method in resolved(name).methods}
