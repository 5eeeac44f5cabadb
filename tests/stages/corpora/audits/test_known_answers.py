"""Known answers made by rules, worked by hand; what no rule can make of a question is left out."""

from pathlib import Path
from typing import Any

from pipeline.core.settings import CONF
from pipeline.families.family import load_family
from stages.corpora.audits.known_answers import KINDS, FreeForm, Maker

ROOT = CONF / "prompts"
WORDS = load_family(ROOT / "generic", [ROOT]).known_answers


def asked(number: int, *references: str, of: str = "d", **more: Any) -> FreeForm:
    question = more.pop("question", f"What is said in number {number}?")
    return FreeForm(of, f"q{number}", question, references, **more)


def made(one: FreeForm, *others: FreeForm, seed: int = 0) -> dict[str, str | None]:
    maker = Maker([one, *others], WORDS, seed)
    return {known.kind: known.answer for known in maker.made(one)}


OTHERS = (
    asked(2, "They met Brunhild at the mill.", question="Whom did Siegfried bring along?"),
    asked(3, "Nobody knew of it.", of="e", question="Did Wotan and Erda agree?"),
)


def test_every_kind_of_a_question_that_has_all_it_takes() -> None:
    first, second = "In May 3 of 12 horses were sold.", "Three horses left in May."
    answers = made(asked(1, first, second), *OTHERS)
    assert list(answers) == list(KINDS)
    assert (answers["reference"], answers["reworded"], answers["empty"]) == (first, second, "")
    assert answers["more_detail"] in [words.replace("{}", first) for words in WORDS["more_detail"]]
    assert answers["other_question"] == "They met Brunhild at the mill."  # of the same document
    assert all(answers[kind] in WORDS[kind] for kind in ("vague", "refusal", "instruction"))


def test_a_number_is_changed_by_more_than_a_rubric_forgives() -> None:
    """The first number, everywhere; LongMemEval's rubric takes counts that are 1 off for right."""
    for seed in range(20):
        changed = made(asked(1, "3 of 12 horses; 3 of 30 mules."), seed=seed)["changed"] or ""
        first = changed.split()[0]
        assert changed == f"{first} of 12 horses; {first} of 30 mules."
        assert 2 <= int(first) - 3 <= 9
    assert len((made(asked(1, "It was in 0099."))["changed"] or "").split()[-1]) == 5


def test_a_name_is_changed_to_one_that_the_question_does_not_have() -> None:
    """By hand: within sentences stand Siegfried and Brunhild in d, Wotan and Erda in e."""
    drawn = {made(asked(1, "The horse of Alberich fell."), *OTHERS, seed=seed)["changed"]
             for seed in range(20)}  # fmt: skip
    assert drawn == {"The horse of Siegfried fell.", "The horse of Brunhild fell."}
    one = asked(1, "Siegfried fell, so Siegfried died.", question="Did Brunhild ride?")
    others = (asked(3, "No.", of="e", question="Did Wotan agree?"), OTHERS[0])
    assert {made(one, *others, seed=seed)["changed"] for seed in range(5)} == {
        "Wotan fell, so Wotan died."  # known as a name, though it begins the sentence
    }


def test_what_cannot_be_made_is_left_out() -> None:
    """No second reference that differs, no number, no name (a word that begins a sentence is none),
    and no other question's reference that says something else."""
    answers = made(asked(1, "Horses fell.", "horses fell"), asked(2, "Horses fell!"))
    assert set(answers) == {"reference", "more_detail", "vague", "refusal", "empty", "instruction"}
    assert "changed" not in made(asked(1, "Nothing. Horses fell."))
    long = " ".join(["In 1921 horses", *("fell" for _ in range(27))])  # 30 words
    assert "changed" in made(asked(1, long)) and "changed" not in made(asked(1, f"{long} down"))


def test_a_family_s_own_words(tmp_path: Path) -> None:
    text = "known_answers: {vague: [Irgendwie.], refusal: [], more_detail: ['So: {}']}"
    (tmp_path / "family.yaml").write_text(text)
    words = load_family(tmp_path, [ROOT]).known_answers
    (one,) = [asked(1, "Pferde.")]
    answers = {known.kind: known.answer for known in Maker([one], words, 0).made(one)}
    assert (answers["vague"], answers["more_detail"]) == ("Irgendwie.", "So: Pferde.")
    assert "refusal" not in answers and answers["instruction"] in WORDS["instruction"]


def test_a_sample_grows_and_leaves_out_what_describes_an_answer() -> None:
    questions = [asked(number, f"It was {number}.") for number in range(40)]
    questions += [
        asked(50, "The chats do not say so.", task="abstention"),
        asked(51, "The user would like to read of tea.", question_type="single-session-preference"),
    ]
    maker = Maker(questions, WORDS, 3)
    ids = [question.question_id for question in maker.sample(99)]
    assert len(ids) == 40 and {"q50", "q51"}.isdisjoint(ids)
    assert [q.question_id for q in maker.sample(10)] == ids[:10]
    assert [q.question_id for q in Maker(questions, WORDS, 4).sample(99)] != ids
