"""Runs by a model of random weights: constrained, all that it says can be read; and all prompts
about a document begin with its memory, which vLLM finds in its prefix cache."""

import json
from pathlib import Path

import pytest

from tests.support.command import QMSUM, own_process, sql, succeed, succeeded
from tests.support.engines.tiny_model import make_tiny_model

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

# `constant` asks nobody, so that there is an answer to rate: babble is cut off.
METHODS = "methods=readagent_p(max_pages=3),readagent_s(max_pages=3),constant"
CONSTRAINED = ("break_point", "look_up_p", "look_up_s", "rate_permissive", "rate_strict")
WHOLE = """select prompt, count(*) filter (finish_reason <> 'stop') as cut
    from calls where prompt not in ('gist', 'answer') group by prompt order by prompt"""
LETTERS = """select count(*) as n from answers a join questions using (question_id)
    where len(options) > 0 and method <> 'constant' and a.answer_index is not null"""
UNREAD = """select 'pages' as row_of, chosen_by, problem from pages
      where chosen_by = 'fallback' or problem is not null
    union all select 'lookups', dropped::varchar, problem from lookups
      where problem is not null or len(list_filter(dropped, lambda d: d.reason <> 'duplicate')) > 0
    union all select 'answers', answer, a.problem
      from answers a join questions q using (question_id)
      where len(q.options) > 0 and a.problem is not null
    union all select 'ratings', method, problem from ratings
      where problem is not null and problem <> 'upstream'"""
# Short gists and free-form answers: babble does not end by itself.
BRIEF = ("reply_tokens.gist=24", "reply_tokens.answer=24")


def engine(folder: Path) -> tuple[str, ...]:
    make_tiny_model(folder / "tiny")
    return ("engine=vllm", f"engine.model={folder / 'tiny'}", "engine.max_workers=1",
            f"warehouse={folder / 'warehouse'}")  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("family", "corpus", "num_letters"),
    [
        ("qmsum", ("corpus=qmsum", f"corpus.path={QMSUM}"), 0),
        ("generic", ("corpus=demo",), 2 * 5),  # its first text's questions with options, by method
    ],
)
def test_no_constrained_reply_of_a_random_model_is_unread(
    tmp_path: Path, family: str, corpus: tuple[str, ...], num_letters: int
) -> None:
    succeed(
        "run", *corpus, f"family={family}", *BRIEF, "limit=1", "run=random", METHODS,
        "reply_format=constrained", *engine(tmp_path), "max_problem_rate=1.0",
    )  # fmt: skip
    warehouse = tmp_path / "warehouse"
    assert sql(warehouse, WHOLE) == [{"prompt": prompt, "cut": 0} for prompt in CONSTRAINED]
    assert sql(warehouse, LETTERS) == [{"n": num_letters}]
    assert sql(warehouse, UNREAD) == []


def test_clue_prompts_are_cached_as_far_as_can_be(tmp_path: Path) -> None:
    prompts = ("clue_spans", "clue_questions", "draft_answer", "answer")
    done = own_process(
        "bench", "cache", "corpus=demo", "limit=1", "methods=memorag(retriever=bm25,draft=true)",
        "rater=none", *engine(tmp_path), "engine.context_tokens=16384",
        *(f"reply_tokens.{prompt}=16" for prompt in prompts), "--pairs", "1", "--json",
        timeout=600,
    )  # fmt: skip
    # Of so short a text the prompts' own words are many: the limit of computed tokens, which is
    # for books, is missed, and that is exit code 3.
    of_ideal, of_all, _ = json.loads(succeeded(done, 3))
    assert of_ideal["figure"] >= 0.95
    assert of_all["figure"] >= 0.8, "three of four prompts begin with the whole text"
