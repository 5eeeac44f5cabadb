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
