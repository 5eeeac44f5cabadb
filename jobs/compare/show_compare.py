"""The parts of a printed comparison."""

from jobs.compare.compare import ComparedPair, Comparison, MethodOfRun
from jobs.output.print_tables import Part, Table, on_one_line
from jobs.statistics.statistics import DRAWS, LEAST_DOCUMENTS, MOST_ENUMERATED

_SHOWN = 5  # questions that A wins, and that B wins
_NOTE = """\
Means over the questions that both have a value of, repeats averaged first.
An answer with a problem counts 0 in metrics of answers.
95% interval of A - B: cluster bootstrap by document; n/a below {least} documents.
p: two-sided sign-flip test, whole documents flipped: in all ways where at most {all} differ, else \
in {drawn:,} drawn ones.
p (Holm): adjusted for the {tests} shown."""


def comparison_parts(comparison: Comparison) -> list[Part]:
    """A and B, if they are equal in all rows; the table, notes on its numbers, and for a single
    pair the questions that differ."""
    pairs, of_two_runs = comparison.rows, len(comparison.raters) > 1

    def named(side: MethodOfRun) -> str:
        return on_one_line(f"{side.method} of {side.run}" if of_two_runs else side.method)

    sides = {"A": [named(pair.a) for pair in pairs], "B": [named(pair.b) for pair in pairs]}
    same = {side: names[0] for side, names in sides.items() if len({*names}) == 1}
    head = ["\n".join(f"{side}: {name}" for side, name in same.items())] if same else []
    has_groups = any(pair.by is not None for pair in pairs)
    rows = [
        {
            "metric": pair.metric,
            **({"by": pair.by} if has_groups else {}),
            **{side: names[index] for side, names in sides.items() if side not in same},
            **_figures(pair),
        }
        for index, pair in enumerate(pairs)
    ]
    table = Table(rows, left=("by", "A", "B"))
    differences = map(_differences, pairs) if comparison.is_one_pair else ()
    return [*head, table, "\n".join(_lines(comparison)), *differences]


def _p(p: float) -> str:
    """Three digits, never 0."""
    return "<0.001" if p < 0.001 else f"{p:.3g}"


def _figures(pair: ComparedPair) -> dict[str, object]:
    of = pair.figures
    return {
        "n": of.n if of else 0,
        "documents": of and of.documents,
        "mean of A": of and of.mean_a,
        "mean of B": of and of.mean_b,
        "A - B": of and f"{of.difference:+.1f}",
        "95% interval": of and ("n/a" if of.low is None else f"{of.low:+.1f}..{of.high:+.1f}"),
        "p": of and _p(of.p),
        "p (Holm)": None if pair.p_holm is None else _p(pair.p_holm),
        "A higher/tied/lower": of and f"{of.wins}/{of.ties}/{of.losses}",
    }


def _lines(comparison: Comparison) -> list[str]:
    rows = comparison.rows
    tests = sum(row.figures is not None for row in rows)
    lines = [*comparison.notes]
    lines += [f"run {run}: {n} inputs are not done; means are over those that are"
              for run, n in comparison.not_done.items() if n]  # fmt: skip
    shown = f"{tests} tests" if tests > 1 else "one test"
    lines.append(_NOTE.format(least=LEAST_DOCUMENTS, all=MOST_ENUMERATED, drawn=DRAWS, tests=shown))
    only_a, only_b = max(row.only_a for row in rows), max(row.only_b for row in rows)
    if only_a or only_b:
        lines.append(f"left out: questions with a value of A alone: {only_a}, of B alone: {only_b}")
    if most := max(row.otherwise for row in rows):
        lines.append(f"left out: {most} ids that stand for other questions in the other run")
    raters = comparison.raters.items()
    return [*lines, *(f"rater of {run}: {on_one_line(name)}" for run, name in raters if name)]


def _differences(pair: ComparedPair) -> str:
    if not pair.differences:
        return f"{pair.metric}: no question on which they differ"
    lines = [f"{pair.metric}: largest differences"]
    lower = sorted(pair.differences, key=lambda d: (d.difference, d.question_id))
    for title, sign, ordered in (("higher", 1, pair.differences), ("lower", -1, lower)):
        questions = [f"{on_one_line(d.question_id)} ({d.difference:+.1f})"
                     for d in ordered if sign * d.difference > 0]  # fmt: skip
        shown = questions[:_SHOWN]
        if more := len(questions) - len(shown):
            shown.append(f"and {more} more (--json has all)")
        lines.append(f"  A {title} ({len(questions)}): {', '.join(shown) or '-'}")
    return "\n".join(lines)
