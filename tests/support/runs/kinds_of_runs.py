"""Small finished runs of every kind in one warehouse, made without Ray, for what reads them."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml
from upath import UPath

from jobs.graph.manifest import run_manifest
from jobs.graph.phases import Phase
from jobs.graph.preparation import Prepared, prepare
from jobs.graph.read_run import read_run
from jobs.run.provenance import provenance
from pipeline.asking.readers import start_reader
from pipeline.store.runs.run_folder import RunFolder
from pipeline.store.shards.layout import raise_layout
from pipeline.worker.crashes import Placement
from pipeline.worker.worker import Worker
from tests.support.command import DATA
from tests.support.runs.written_plan import units_of
from tests.support.texts.small_corpus import document, question, write

UNIFORM = ("memory=uniform", "memory.words=300")
MANY = (
    "methods=gist_only,readagent_p(max_pages=1..6),readagent_s(max_pages=3),bm25(top_k=1..6),"
    "truncated(keep=first|last,num_words=500),full_text,closed_book,constant,"
    "random_pages(top_k=1..3),oracle_pages(top_k=1..3)"
)
CHATS = DATA / "longmemeval" / "longmemeval_oracle_16.json"
BM25 = "retriever=bm25"


@dataclass(frozen=True)
class Kind:
    """The words of a run; `left_out`: how many of its documents are not executed."""

    words: tuple[str, ...]
    left_out: int = 0


KINDS = {
    "many_methods": Kind(("corpus=demo", *UNIFORM, MANY, "limit=1")),
    "no_evidence": Kind(("corpus=tables", "methods=full_text", "rater=none",
                         "corpus.path=FOLDER/plain")),
    "no_questions": Kind(("corpus=text", "methods=gist_only", "rater=none", *UNIFORM,
                          "corpus.path=FOLDER/texts")),
    "chats": Kind(("corpus=longmemeval", f"corpus.path={CHATS}", "limit=2", "rater=none",
                   f"methods=longmemeval({BM25},top_k=3,expansion=facts|none),full_history")),
    "walks_and_clues": Kind(("corpus=demo", "limit=1", *UNIFORM, "rater=none",
                             "methods=memwalker(segment_tokens=150,max_children=3),"
                             f"memorag(memory=full|gists,{BM25})")),
    "incomplete": Kind(("corpus=demo", "limit=2", *UNIFORM, "methods=gist_only,bm25(top_k=1)"), 1),
    "repeated": Kind(("corpus=tables", "methods=gist_only,bm25(top_k=1)", "repeats=2", "rater=none",
                      "engine=scripted", "engine.script=FOLDER/script.yaml",
                      "engine.temperature=1.0", *UNIFORM, "corpus.path=FOLDER/plain")),
}  # fmt: skip


def make(folder: Path, name: str) -> None:
    """Make one run of KINDS, named so, in `folder`/warehouse."""
    kind = KINDS[name]
    _write_corpora(folder)
    words = [word.replace("FOLDER", str(folder)) for word in kind.words]
    resolved = read_run([*words, f"run={name}", f"warehouse={folder / 'warehouse'}"])
    prepared = prepare(resolved, resolved.config.warehouse, lambda line: None)
    raise_layout(UPath(resolved.config.warehouse))
    run = RunFolder(resolved.config.warehouse, name)
    run.start(run_manifest(resolved), provenance(prepared.corpus.digest()), True)
    run.plan(prepared.run.steps, prepared.plan.folder)
    ids = [*units_of(prepared)]
    for phase in prepared.run.phases:
        asyncio.run(_execute(phase, prepared, run, ids[: len(ids) - kind.left_out]))


def _write_corpora(folder: Path) -> None:
    """Two documents with questions that have no evidence, and their texts alone."""
    documents = [document(1), document(2)]
    asked = [question(number, of=1) for number in range(3)]
    write(folder / "plain", documents, [{**one, "evidence": []} for one in asked])
    (folder / "texts").mkdir(exist_ok=True)
    for one in documents:
        (folder / "texts" / f"{one['document_id']}.txt").write_text(one["text"])
    (folder / "script.yaml").write_text(yaml.safe_dump({"replies": [{"reply": "mill1 page1"}]}))


async def _execute(
    phase: Phase, prepared: Prepared, run: RunFolder, document_ids: Collection[str]
) -> None:
    """All units of the documents in this process."""
    start = None
    if phase.engine is not None:
        family = prepared.run.family
        start = partial(start_reader, phase.engine, family, prepared.run.config.reply_format)
    steps = list(phase.with_upstream().values())
    worker = Worker(run.path, "launch", Placement("worker"), steps, start, 60.0)
    for _, work in phase.executions(prepared.plan, lambda: 1):
        mine = [one for one in work.documents if one.document_id in document_ids]
        await asyncio.gather(*(worker.work(one.document_id, one.units) for one in mine))
