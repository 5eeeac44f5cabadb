"""The experiments readagent_*: that each does what the paper does, in prompts and settings."""

import pytest

from jobs.graph.resolved_run import ResolvedRun, read_run
from stages.prompts.readagent_memory import BreakPoint, Labelled
from tests.support.reading import family

QMSUM, QUALITY = "readagent_qmsum", "readagent_quality"
BOOKS, FILMS = "readagent_narrativeqa_gutenberg", "readagent_narrativeqa_movie"
EXPERIMENTS = {  # by family
    QMSUM: "readagent_table3",
    QUALITY: "readagent_table1",
    BOOKS: "readagent_table2_gutenberg",
    FILMS: "readagent_table2_movie",
}


def config(name: str) -> ResolvedRun:
    """The run of a family's experiment."""
    return read_run([f"experiment={EXPERIMENTS.get(name, name)}", "corpus.path=."])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_experiment_reads_with_its_own_family_and_one_vector_a_page(name: str) -> None:
    run = config(name)
    assert (run.config.name, run.family.name) == (EXPERIMENTS[name], name)
    assert run.config.embedder.chunk_words is None
    assert config(name.removeprefix("readagent_")).config.embedder.chunk_words == 100


@pytest.mark.parametrize(
    ("name", "min_words", "max_words", "words", "preceding", "following"),
    [
        (QUALITY, 280, 600, 360, None, "paragraph"),
        (QMSUM, 280, 600, 360, None, "ellipsis"),
        (BOOKS, 500, 3000, 2000, 100, "ellipsis"),
        (FILMS, 600, 1000, 800, 0, "nothing"),
    ],
)
def test_settings(
    name: str, min_words: int, max_words: int, words: int, preceding: int | None, following: str
) -> None:
    expected = {
        "min_words": min_words, "max_words": max_words, "tail_words": 350, "words": words,
        "preceding_words": preceding, "following": following, "label_rule": "notebook",
        "answer_words": None, "answer_page_tags": False, "truncate_by": "spaces",
        "bm25": "okapi_on_words", "first_page": 0, "answer_each_look_up": name == FILMS,
    }  # fmt: skip
    assert {key: family(name).settings[key] for key in expected} == expected
    own = family(name.removeprefix("readagent_")).settings
    assert {own["label_rule"], own["following"], own["bm25"], own["truncate_by"]} == {
        "within_limits", "nothing", "plus_on_stems", "words",
    }  # fmt: skip
    assert own["answer_page_tags"] is True and own["answer_words"]


@pytest.mark.parametrize(
    ("name", "form"),
    [(QMSUM, "Label: <57>"), (QUALITY, "Break point: <57>"), (BOOKS, "Breakpoint: <57>"),
     (FILMS, "The break point is: <57>")],
)  # fmt: skip
def test_replies_have_the_grammar_of_the_dataset(name: str, form: str) -> None:
    window = BreakPoint("Before.", (Labelled("One.", None), Labelled("Two.", 7)), "Next.\n...")
    (message,) = family(name).render(window)
    assert all(part in message["content"] for part in (form, "Before.\n", "Next.\n...\n"))
    assert family(name).form(BreakPoint) == form.replace("57", "{}")
