"""Compiled histories: evidence among fillers, of the length wanted, the same for the same seed."""

import json
import tempfile
import tracemalloc
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.graph.loading import chosen_documents
from jobs.graph.read_run import read_run
from stages.corpora import Loaded, load
from tests.support.command import DATA, sql, succeed
from tests.support.texts.haystack import files, gold, histories, parts, question, session, shown
from tests.support.texts.loading import corpus_of, loaded

ORACLE = DATA / "longmemeval" / "longmemeval_oracle_16.json"
FILLERS = [session(f"f{n}") for n in range(30)]


def when(text: str) -> datetime:
    return datetime.strptime(text, "%Y/%m/%d (%a) %H:%M")


def texts(corpus: list[Loaded]) -> list[str]:
    return [item.document.text for item in corpus]


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_evidence_once_fillers_evenly_by_date_and_as_many_as_wanted(data: Any) -> None:
    names = data.draw(st.lists(st.sampled_from("ABCDEF"), min_size=1, max_size=5, unique=True))
    sizes = data.draw(st.lists(st.integers(2, 60), min_size=1, max_size=12))
    fillers = [session(f"f{n}", size) for n, size in enumerate(sizes)]
    target: dict[str, int] = data.draw(
        st.fixed_dictionaries({"sessions": st.integers(len(names), 40)})
        | st.fixed_dictionaries({"tokens": st.integers(100, 2000)})
    )
    seed = data.draw(st.integers(0, 9))
    with tempfile.TemporaryDirectory() as folder:
        [item] = histories(Path(folder), [question(1, *names)], fillers, **target, seed=seed)
    found = parts(item)
    dates = [when(date) for date, _ in found]
    assert dates == sorted(dates) and dates[-1] < when("2023/05/30 (Tue) 10:00")
    drawn = Counter(text for _, text in found)
    assert [drawn.pop(shown(session(name))) for name in names] == [1] * len(names)
    own = [shown(filler) for filler in fillers]
    assert set(drawn) <= set(own)
    counts = [drawn[text] for text in own]
    assert max(counts) - min(counts) <= 1  # none comes again before all others have come
    if "sessions" in target:
        assert len(found) == target["sessions"]
    else:
        words = len(" ".join(text for _, text in found).split())
        assert item.document.num_words == words
        longest = max(len(text.split()) for text in own)
        evidence = sum(len(shown(session(name)).split()) for name in names)
        assert words * 1.3 >= target["tokens"] - 1e-6
        assert (words - longest) * 1.3 < target["tokens"] or words == evidence
    places = json.loads(item.document.metadata)["sessions"]
    assert [place["date"] for place in places] == [date for date, _ in found]
    assert sorted(gold(item)) == sorted(
        shown(session(n)).split("\n\n")[i] for n in names for i in (0, 1)
    )


def test_the_seed_and_the_question_make_the_history(tmp_path: Path) -> None:
    rows = [question(1, "A"), question(2, "A")]
    once = histories(tmp_path, rows, FILLERS, sessions=12)
    assert histories(tmp_path, rows, FILLERS, sessions=12) == once
    assert histories(tmp_path, rows[::-1], FILLERS, sessions=12) == once[::-1]
    one, two = texts(once)
    assert one != two
    other = texts(histories(tmp_path, rows, FILLERS, sessions=12, seed=1))
    assert other[0] not in (one, two) and other[1] not in (one, two)
    changed = [session(f"g{n}") for n in range(30)]
    assert histories(tmp_path, rows, changed, sessions=12)[0].document != once[0].document


def test_the_settings_that_make_the_text_are_hashed(tmp_path: Path) -> None:
    def hashed(**keys: Any) -> str:
        return json.dumps(corpus_of(tmp_path, "longmemeval_haystack", **keys).hashed())

    keys: list[dict[str, Any]] = [
        {}, {"seed": 1}, {"sessions": 5}, {"tokens": 5}, {"first_date": "2023/05/01"},
        {"last_date": "2023/05/01"},
    ]  # fmt: skip
    assert len({hashed(**each) for each in keys}) == len(keys)
    assert hashed(fillers="elsewhere.jsonl") == hashed()


def test_the_real_questions_among_the_sessions_of_others(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = json.loads(ORACLE.read_bytes())
    others = [turns for row in rows[8:] for turns in row["haystack_sessions"]]
    corpus = histories(tmp_path, rows[:8], others, tokens=40_000)
    plain = loaded(ORACLE, "longmemeval")[:8]
    for item, bare in zip(corpus, plain, strict=True):
        assert item.document.document_id == bare.document.document_id
        assert gold(item) == gold(bare)
        # The question is the same but for where its evidence is, and so are the evidence's dates.
        assert str(item.questions[0]).partition("evidence=")[0] == (
            str(bare.questions[0]).partition("evidence=")[0])  # fmt: skip
        assert set(parts(bare)) <= set(parts(item))
        assert 40_000 <= item.document.num_words * 1.3 < 45_000
    assert len(set(texts(corpus))) == 8


def test_limit_and_sample_choose_among_the_questions(tmp_path: Path) -> None:
    made = files(tmp_path, [question(n, "A") for n in range(6)], FILLERS)
    words = ["corpus=longmemeval_haystack", f"corpus.path={made['path']}", "corpus.sessions=4"]
    words.append(f"corpus.fillers={made['fillers']}")
    whole = list(chosen_documents(read_run(words).config))
    assert list(chosen_documents(read_run([*words, "limit=2"]).config)) == whole[:2]
    sampled = list(chosen_documents(read_run([*words, "sample=3"]).config))
    assert len(sampled) == 3 and all(item in whole for item in sampled)


@pytest.mark.slow
def test_a_run_finds_the_evidence_among_fillers(tmp_path: Path) -> None:
    rows = [
        question(n, f"Ann{n}", question=f"What does Ann{n} keep?", haystack_sessions=[
            [{"role": "user", "content": f"Ann{n} keeps a red lamp."}]])
        for n in range(3)
    ]  # fmt: skip
    made = files(tmp_path, rows, FILLERS)
    words = ["corpus=longmemeval_haystack", f"corpus.path={made['path']}", "corpus.tokens=300"]
    words += [f"corpus.fillers={made['fillers']}", "methods=bm25(top_k=1)", "memory=uniform"]
    succeed("run", *words, "rater=none", "engine=extractive", f"warehouse={tmp_path / 'w'}")
    recalls = "select value from scores where metric = 'evidence_recall'"
    assert [row["value"] for row in sql(tmp_path / "w", recalls)] == [100.0] * 3
    answers = sql(tmp_path / "w", "select answer from answers")
    assert len(answers) == 3 and all("red lamp" in row["answer"] for row in answers)


@pytest.mark.slow
@pytest.mark.parametrize("num_questions", [2, 20])
def test_neither_the_fillers_nor_the_histories_are_held(tmp_path: Path, num_questions: int) -> None:
    """Histories of 1.6 MB and fillers of 24 MB: only a history and the one before it are held."""
    rows = [question(n, f"E{n}") for n in range(num_questions)]
    fillers = [session(f"{n:099}", 600) for n in range(400)]
    made = files(tmp_path, rows, fillers)
    corpus = corpus_of(**made, tokens=20_800)
    tracemalloc.start()
    for item in load(corpus):
        assert 1_500_000 < len(item.document.text) < 1_800_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 11_000_000
