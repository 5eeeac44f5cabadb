"""`gistmill cite`: what a paper must state of a run."""

import json
import re

import pytest

from jobs.graph.resolved_run import papers_of, read_run, run_manifest
from pipeline.core.settings import CONF
from pipeline.work.methods import expand_methods, methods_in
from stages.corpora.reading.corpus import FORMATS
from tests.support.command import DATA, succeed
from tests.support.runs.hand_run import HandRun

PAPERS = (CONF / "papers.bib").read_text(encoding="utf-8")
KEYS = re.findall(r"^@\w+\{(\w+),", PAPERS, re.MULTILINE)


@pytest.mark.slow
def test_what_is_stated(hand: HandRun) -> None:
    words = [f"warehouse={hand.warehouse}", "run=hand"]
    text = succeed("cite", *words)
    found = json.loads(succeed("cite", *words, "--json"))
    assert found["corpus"]["questions"] == 6
    assert "readagent_p(max_pages=2): n = 6" in text
    assert "family hand " in text and "in our own words, not the papers'" in text
    assert "Replies are constrained." in text
    assert "2,000 bootstrap samples of documents" in text
    assert "full_text: 3 answers (50.0%) have a problem" in text
    assert "EM (squad_em): exact match after SQuAD's normalization" in text
    assert re.search(r"rate: .*engine scripted.*prompts: rate_permissive \w+ \(at most 10", text)
    assert {r["rubric"] for r in found["raters"]} == {"lr", "permissive", "strict"}
    assert set(found["papers"]) == {"readagent", "bm25"}
    assert "@software{gistmill," in text and "version = {0." in text
    assert "\n  author = {{The gistmill contributors}},\n  url = {" in text
    assert "2402.09727" in text and "2310.05029" not in text
    own = "not known; corpus.licence=... states it when the run is started"
    assert f"\nLicence of the data:\n- {own}\n" in text


def test_every_paper_that_a_method_names_is_there_and_whole() -> None:
    names = [name for name in methods_in([CONF / "method"])]
    assert len(KEYS) == len(set(KEYS)) >= 7
    given = ",".join({"dos_rag": "dos_rag(budget=9)",
                      "truncated": "truncated(keep=first,num_words=9)",
                      "truncated_to_context": "truncated_to_context(keep=first)",
                      "readagent_p_conditional": "readagent_p_conditional(task=x)"}.get(n, n)
                     for n in names)  # fmt: skip
    methods = expand_methods(given, [CONF / "method"])
    named = [(method.file, method.papers) for method in methods]
    named += [(name, corpus.papers) for name, corpus in FORMATS.items()]
    found = papers_of(named, [CONF])
    assert set(found) == set(KEYS), "an entry that no method and no data names"
    for entry in found.values():
        assert entry.count("{") == entry.count("}")
        assert {"title", "author", "year"} <= set(re.findall(r"^  (\w+) = ", entry, re.MULTILINE))


@pytest.mark.parametrize(
    ("corpus", "path", "paper", "licences"),
    [
        ("qmsum", "qmsum/val.jsonl", "10.18653/v1/2021.naacl-main.472", {"QMSum": "MIT"}),
        ("narrativeqa", "narrativeqa", "10.1162/tacl_a_00023", None),
        ("quality", "quality/QuALITY.one_record.jsonl", "10.18653/v1/2022.naacl-main.391", None),
        ("longmemeval", "longmemeval/longmemeval_oracle_16.json", "2410.10813", None),
    ],
)
def test_the_paper_and_the_licence_of_a_dataset_are_stated(
    corpus: str, path: str, paper: str, licences: dict[str, str] | None
) -> None:
    """Another licence changes no step and no run."""
    words = [f"corpus={corpus}", f"corpus.path={DATA / path}", "methods=gist_only"]
    run, licensed = read_run(words), read_run([*words, "corpus.licence=CC0, so free"])
    assert run.name == licensed.name
    assert [step.id for step in run.steps] == [step.id for step in licensed.steps]
    facts = run_manifest(run)["report"]
    assert set(facts["papers"]) == {"readagent", corpus}
    assert paper in facts["papers"][corpus]
    assert licences is None or facts["licences"] == licences
    assert run_manifest(licensed)["report"]["licences"] == {corpus: "CC0, so free"}
