"""What is done is never done again: the exact number of model calls of every kind of rerun."""

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.command import succeed
from tests.support.texts.small_corpus import UNIFORM, document, question, write

pytestmark = pytest.mark.slow

METHODS = "gist_only,readagent_p(max_pages=2),bm25(top_k=1)"
CORPUS = [document(1), document(2)]
QUESTIONS = [question(1, of=1, references=2), question(2, of=1), question(3, of=2)]
# By hand: 2 documents of 3 pages; 3 questions with 4 references, 3 methods. The uniform pages ask
# nobody; only readagent_p asks for its look-up; every reference is rated twice.
FIRST = {"gist": 6, "look_up": 3, "answer": 9, "rate": 24}


class Runs:
    """One corpus and warehouse, run again and again."""

    def __init__(self, folder: Path) -> None:
        self.corpus = folder / "corpus"
        self.warehouse = folder / "warehouse"
        self.family = folder / "family"
        shutil.copytree(Path("conf/prompts/generic"), self.family / "generic")
        write(self.corpus, CORPUS, QUESTIONS)

    def calls(self, *words: str, methods: str = METHODS) -> Mapping[str, int]:
        """The model calls of one more run, by stage; stages that asked nothing left out."""
        out = succeed(
            "run", "corpus=tables", f"corpus.path={self.corpus}", f"warehouse={self.warehouse}",
            f"methods={methods}", f"family={self.family / 'generic'}", *UNIFORM, *words, "--json",
        )  # fmt: skip
        found: Counter[str] = Counter()
        for step_id, calls in json.loads(out)["calls"].items():
            found[step_id.rpartition("-")[0]] += calls
        return +found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("counts"))


def test_exact_calls_of_every_rerun(runs: Runs) -> None:
    assert runs.calls() == FIRST
    assert runs.calls() == {}, "a rerun"

    # gist_only and a second bm25: 3 answers and 4 references rated twice.
    more = METHODS + ",bm25(top_k=2)"
    assert runs.calls(methods=more) == {"answer": 3, "rate": 8}, "one method more"

    # q4 of d1, one reference: one look-up, 4 answers, 4 x 2 verdicts.
    write(runs.corpus, CORPUS, [*QUESTIONS, question(4, of=1)])
    assert runs.calls(methods=more) == {"look_up": 1, "answer": 4, "rate": 8}, "one question more"

    # d3 with 3 pages and one question.
    questions = [*QUESTIONS, question(4, of=1), question(5, of=3)]
    write(runs.corpus, [*CORPUS, document(3)], questions)
    expected = {"gist": 3, "look_up": 1, "answer": 4, "rate": 8}
    assert runs.calls(methods=more) == expected, "one document more"

    assert runs.calls("limit=1", methods=more) == {}, "a limit redoes nothing"

    # 5 questions with 6 references, 4 methods: answered and rated again, read and looked up never.
    template = runs.family / "generic" / "answer.jinja"
    template.write_text(template.read_text() + "\nThink of the reader.\n")
    assert runs.calls(methods=more) == {"answer": 20, "rate": 48}, "a changed answer prompt"

    # A gist shard and its calls: that document's 3 gists, nothing after them.
    (gist_step,) = (runs.warehouse / "tables" / "gists").iterdir()
    shard = sorted(gist_step.iterdir())[0]
    shard.unlink()
    assert runs.calls(methods=more) == {}, "rows are made from the committed calls"
    assert shard.is_file()
    shard.unlink()
    (runs.warehouse / "tables" / "calls" / gist_step.name / shard.name).unlink()
    assert runs.calls(methods=more) == {"gist": 3}, "one shard deleted"
