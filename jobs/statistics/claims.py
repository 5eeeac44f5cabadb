"""The rows that a report marks as the best of a column: from the highest mean down to the last that
does not differ significantly from it by the paired test of `compare` (paired_test.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from operator import attrgetter
from typing import Any

from jobs.statistics.means import Key, Mean
from jobs.statistics.paired_test import holm, quick_sign_flip
from pipeline.core.sql_files import sql_beside
from pipeline.store.sql.connection import query
from pipeline.work.stage import Column

LEVEL = 0.05  # an adjusted p-value below it says that the difference is no chance
_SQL = sql_beside(__file__)
Means = Mapping[Key, Mapping[str, Mean]]
"""By method and group, then by measure."""


@dataclass(frozen=True)
class Pair:
    """A test: the method with the highest mean of a group, against another."""

    by: str | None
    measure: str
    leader: str
    method: str


def pairs_of(means: Means, columns: Sequence[Column]) -> list[Pair]:
    """The tests of a table, by column and group, those of higher means first.

    Only of columns in which more is better and that are means over answers, and of the rows that
    are over the most answers: a mean over fewer is over other questions. Floors and ceilings take
    part as all methods do.
    """
    tested = [column.measure for column in columns if column.more_is_better
              and not (column.geometric_mean_of or column.mean_of_means)]  # fmt: skip
    found: list[Pair] = []
    for measure, by in product(tested, dict.fromkeys(by for _, by in means)):
        own = {method: of[measure] for (method, group), of in means.items()
               if group == by and measure in of}  # fmt: skip
        most = max((mean.n for mean in own.values()), default=0)
        known = {method: mean.mean for method, mean in own.items()
                 if mean.n == most and mean.mean is not None}  # fmt: skip
        leader, *others = sorted(known, key=known.__getitem__, reverse=True) or [""]
        found += [Pair(by, measure, leader, method) for method in others]
    return found


def p_values(connection: Any, pairs: Sequence[Pair]) -> list[float]:
    """The p-value of each test, over the documents' answers of both, adjusted for all by Holm's
    method."""
    columns = [[getattr(pair, name) for pair in pairs] for name in Pair.__annotations__]
    connection.execute(_SQL["pairs"], [len(pairs), *columns])
    query(connection, _SQL["paired_sums"])
    if query(connection, "from paired_sums where not is_of_all limit 1"):
        query(connection, _SQL["paired_values"])  # which reads every value again
    sums = {row["place"]: row["differences"] for row in query(connection, _SQL["differences"])}
    return holm([quick_sign_flip(sums.get(place, [])) for place in range(len(pairs))])


def best_of(tests: Mapping[Pair, float]) -> dict[Key, list[str]]:
    """By method and group, the measures in which it is marked: the leader alone if it beats all
    others, else with the others down to the last that it does not beat; none if that is the last of
    all. `tests`: of each column and group the highest mean first."""
    found: dict[Key, list[str]] = {}
    for _, column in groupby(tests, key=attrgetter("by", "measure")):
        own = list(column)
        not_beaten = [place for place, pair in enumerate(own) if tests[pair] >= LEVEL]
        equals = [pair.method for pair in own[: max(not_beaten, default=-1) + 1]]
        for method in (own[0].leader, *equals) if len(equals) < len(own) else ():
            found.setdefault((method, own[0].by), []).append(own[0].measure)
    return found
