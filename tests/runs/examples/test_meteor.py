"""docs/examples/meteor: its values against fractions worked by hand, and a rerun without a call."""

from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.runs.example_run import example_rows

# F = 10PR / (R + 9P); of it the share 1 - (runs / matches)^3 / 2 is left.
CASES = [
    ("The cat sat on the mat.", "the cat sat on the mat", 1 - Fraction(1, 2) / 6**3),
    ("on the mat sat the cat", "the cat sat on the mat", 1 - Fraction(3, 6) ** 3 / 2),
    # The authors' example: 6 of 7 words match, in the runs `the president` and `spoke ...`.
    ("the president then spoke to the audience", "the president spoke to the audience",
     Fraction(60, 61) * (1 - Fraction(2, 6) ** 3 / 2)),
    # The second `the`, before `mat`: one run of two words, where the first would make two runs.
    ("the mat", "the cat on the mat", Fraction(20, 47) * (1 - Fraction(1, 2) ** 3 / 2)),
    ("Rivers rise", "river rises", 1 - Fraction(1, 2) ** 3 / 2),  # by their stems
    ("rises rise", "rise", Fraction(10, 11) * Fraction(1, 2)),  # P 1/2, R 1: the exact one alone
    ("mill", "the old mill stands", Fraction(10, 37) * Fraction(1, 2)),  # P 1, R 1/4
    ("yes", "no", Fraction(0)),
]  # fmt: skip


@pytest.mark.slow
def test_values_by_hand(tmp_path: Path) -> None:
    questions = [
        {"question_id": f"q{n}", "question": f"Case {n}?", "references": ["zzz", reference]}
        for n, (_, reference, _) in enumerate(CASES)
    ]
    replies = [{"prompt": "answer", "match": f"Case {n}", "reply": answer}
               for n, (answer, _, _) in enumerate(CASES)]  # fmt: skip

    expected = {f"q{n}": float(100 * value) for n, (*_, value) in enumerate(CASES)}
    for _ in ("made", "resumed"):
        rows = example_rows(tmp_path, "full_text", replies, "family=meteor", plugin="meteor",
                            questions=questions)  # fmt: skip
        scores = [row for row in rows["scores"] if row["metric"] == "meteor"]
        assert {row["question_id"]: row["value"] for row in scores} == pytest.approx(expected)
        assert len(rows["calls"]) == len(CASES)
