"""A model of random weights, constrained: whatever it is asked, what it says can be read."""

from pathlib import Path

import pytest

from tests.support.command import QMSUM, gistmill, sql
from tests.support.engines.tiny_model import make_tiny_model

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.sampled]

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
ACTIONS = """select count(*) as visits, count(distinct question_id) as questions,
      sum(num_invalid)::int as invalid, count(*) filter (action is null) as no_action,
      count(*) filter (num_replies > 1) as twice,
      count(*) filter (problem not in ('truncated')) as problems,
      count(*) filter (not coalesce(case action when 'enter' then list_contains(children, to_node)
        when 'revert' then to_node is not distinct from parent
        else page_index is not null end, false)) as illegal
    from visits join (select document_id, node_index, children, parent from nodes)
      using (document_id, node_index)"""


# Short gists and free-form answers: babble does not end by itself.
BRIEF = ("reply_tokens.gist=24", "reply_tokens.answer=24")


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
    make_tiny_model(tmp_path / "tiny")
    done = gistmill(
        "run", *corpus, f"family={family}", *BRIEF, "limit=1", "run=random", METHODS,
        "reply_format=constrained", "engine=vllm", f"engine.model={tmp_path / 'tiny'}",
        "engine.max_workers=1", f"warehouse={tmp_path}", "max_problem_rate=1.0",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sql(tmp_path, WHOLE) == [{"prompt": prompt, "cut": 0} for prompt in CONSTRAINED]
    assert sql(tmp_path, LETTERS) == [{"n": num_letters}]
    assert sql(tmp_path, UNREAD) == []


def test_every_action_of_a_random_model_is_legal(tmp_path: Path) -> None:
    """Of MemWalker over a meeting: each reply has one, and none was asked for twice. Babble may be
    longer than an answer's budget."""
    make_tiny_model(tmp_path / "tiny")
    done = gistmill(
        "run", "corpus=qmsum", f"corpus.path={QMSUM}", "family=qmsum", "limit=1", "run=walks",
        "methods=memwalker(segment_tokens=2000,max_children=3)", "reply_format=constrained",
        "reply_tokens.summarize=24", "reply_tokens.compress=24", "engine=vllm",
        f"engine.model={tmp_path / 'tiny'}", "engine.max_workers=1", f"warehouse={tmp_path}",
        "rater=none", "max_problem_rate=1.0",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = sql(tmp_path, ACTIONS)
    assert row.pop("visits") > row.pop("questions") > 0
    assert row == {"invalid": 0, "no_action": 0, "twice": 0, "illegal": 0, "problems": 0}
