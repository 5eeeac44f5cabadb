"""The parts of a printed comparison."""

import shlex
from collections.abc import Mapping, Sequence

from upath import UPath

from jobs.compare.compare import ComparedPair, Comparison
from jobs.config.options import WAREHOUSE
from jobs.output.print_tables import Part, Table, on_one_line
from jobs.statistics.statistics import LEAST_DOCUMENTS

_SHOWN = 5  # questions that A wins, and that B wins
_NOTE = """\
Means over the questions that both have a value of, repeats averaged first{problems}.
95% interval of A - B: cluster bootstrap by document; n/a below {least} documents.
p: two-sided sign-flip test, whole documents flipped; exact: by all flips there are, else by so \
many drawn with a seed.
p (Holm): adjusted for the {tests} shown."""
_PROBLEMS = ".\nAn answer with a problem counts 0{} ({})"
_BEST = (
    "B has the highest mean over the most questions, by these same data: chosen so,",
    "its lead is overstated and p too small; to test a claim, name both beforehand.",
)
_ENOUGH = 6  # documents: 2 / 2**5 is above 0.05
_TOO_FEW = f"With fewer than {_ENOUGH} documents p is above 0.05 whatever the difference."
_ONE_PAIR = "gistmill compare A B lists the questions on which two methods differ."


def comparison_parts(comparison: Comparison, warehouse: UPath) -> list[Part]:
    """A, B and the kind of test, if they are equal in all rows; the table, notes on its numbers,
    and for a single pair the questions that differ. A hint names the `warehouse`."""
    pairs, of_two_runs = comparison.rows, len(comparison.raters) > 1
    named = [_named(pair, of_two_runs) for pair in pairs]
    constant = {key: value for key, value in named[0].items()
                if all(names[key] == value for names in named)}  # fmt: skip
    has_groups = any(pair.by is not None for pair in pairs)
    rows = [
        _cells(pair, {key: name for key, name in names.items() if key not in constant}, has_groups)
        for pair, names in zip(pairs, named, strict=True)
    ]
    head = ["\n".join(f"{name}: {value}" for name, value in constant.items())] if constant else []
    parts: list[Part] = [*head, Table(rows, left=("by", "A", "B"))]
    if not comparison.is_one_pair:
        return [*parts, "\n".join([*_lines(comparison), _ONE_PAIR])]
    parts += ["\n".join(_lines(comparison)), *map(_differences, pairs)]
    if example := next((question for pair in pairs for question in pair.differences), None):
        words = [] if warehouse == WAREHOUSE else [f"warehouse={warehouse}"]
        run = f"run={pairs[0].a.run}"
        hint = shlex.join(["gistmill", "trace", example.question_id, *words, run])
        parts.append(f"Look at one: {on_one_line(hint)}")
    return parts


def _p(p: float) -> str:
    """Three digits, never 0."""
    return "<0.001" if p < 0.001 else f"{p:.3g}"


def _named(pair: ComparedPair, of_two_runs: bool) -> dict[str, str]:
    """A and B by name, with the run of each if there are two, and the kind of test."""
    a, b = (on_one_line(f"{side.method} of {side.run}" if of_two_runs else side.method)
            for side in (pair.a, pair.b))  # fmt: skip
    draws = pair.figures.draws if pair.figures else None
    return {"A": a, "B": b, "test": "exact" if draws is None else f"{draws} flips drawn"}


def _cells(pair: ComparedPair, named: Mapping[str, str], has_groups: bool) -> dict[str, object]:
    """`named`: A, B and the kind of test, where they differ between rows."""
    of = pair.figures
    return {
        "metric": pair.metric,
        **({"by": pair.by} if has_groups else {}),
        **{name: side for name, side in named.items() if name != "test"},
        "n": of.n if of else 0,
        "documents": of and of.documents,
        "mean of A": of and of.mean_a,
        "mean of B": of and of.mean_b,
        "A - B": of and f"{of.difference:+.1f}",
        "95% interval": of and ("n/a" if of.low is None else f"{of.low:+.1f}..{of.high:+.1f}"),
        "p": of and _p(of.p),
        **{name: kind for name, kind in named.items() if name == "test"},
        "p (Holm)": None if pair.p_holm is None else _p(pair.p_holm),
        "A higher/tied/lower": of and f"{of.wins}/{of.ties}/{of.losses}",
    }


def _lines(comparison: Comparison) -> list[str]:
    rows = comparison.rows
    tests = sum(row.figures is not None for row in rows)
    lines = [*comparison.notes]
    lines += [f"run {run}: {n} inputs are not done; means are over those that are"
              for run, n in comparison.not_done.items() if n]  # fmt: skip
    lines += _BEST if comparison.is_best else ()
    problems = ""  # which count 0 in measures of answers
    if of_answers := [row for row in rows if row.measures_answers]:
        where = ", as in the report" if len(of_answers) == len(rows) else " in metrics of answers"
        a, b = [row.problems_a for row in of_answers], [row.problems_b for row in of_answers]
        problems = _PROBLEMS.format(where, _range("such questions of A", a, "of B", b))
    shown = f"{tests} tests" if tests > 1 else "one test"
    lines += _NOTE.format(problems=problems, least=LEAST_DOCUMENTS, tests=shown).splitlines()
    if any(row.figures and row.figures.documents < _ENOUGH for row in rows):
        lines.append(_TOO_FEW)
    only_a, only_b = [row.only_a for row in rows], [row.only_b for row in rows]
    if any(only_a + only_b):
        alone = _range("questions with a value of A alone", only_a, "of B alone", only_b)
        lines.append(f"left out: {alone}")
    if most := max(row.otherwise for row in rows):
        lines.append(f"left out: {most} ids that stand for other questions in the other run")
    raters = comparison.raters
    names = {name for name in raters.values() if name}
    if names and len({*raters.values()}) > 1:
        by_run = (f"{on_one_line(rater or 'none')} in {run}" for run, rater in raters.items())
        return [*lines, f"raters differ: {', '.join(by_run)}"]
    return [*lines, *(f"rater {on_one_line(name)}" for name in names)]


def _range(of_a: str, a: Sequence[int], of_b: str, b: Sequence[int]) -> str:
    low_high = [f"{min(n)} to {max(n)}" if min(n) < max(n) else str(n[0]) for n in (a, b)]
    return f"{of_a}: {low_high[0]}, {of_b}: {low_high[1]}"


def _differences(pair: ComparedPair) -> str:
    if not pair.differences:
        return f"{pair.metric}: no question on which they differ"
    flipped = pair.is_right_or_wrong
    higher = [question for question in pair.differences if question.difference > 0]
    lower = [question for question in pair.differences if question.difference < 0]
    lower.sort(key=lambda question: (question.difference, question.question_id))
    lines = [f"{pair.metric}: {'questions that flipped' if flipped else 'largest differences'}"]
    for title, of in (("A right, B wrong" if flipped else "A higher", higher),
                      ("A wrong, B right" if flipped else "A lower", lower)):  # fmt: skip
        shown = [on_one_line(question.question_id)
                 + ("" if flipped else f" ({question.difference:+.1f})")
                 for question in of[:_SHOWN]]  # fmt: skip
        shown += [f"and {len(of) - _SHOWN} more (--json has all)"] if len(of) > _SHOWN else []
        lines.append(f"  {title} ({len(of)}): {', '.join(shown) or '-'}")
    return "\n".join(lines)
