"""A sheet of answers for a person to label, who sees neither methods nor verdicts."""

from collections.abc import Mapping
from typing import Any

from jobs.config.options import ReadOptions
from jobs.output.csv_text import csv_text
from jobs.report.answer_rows import answers
from pipeline.core.errors import UsageError
from pipeline.core.sql_files import filled, sql_beside
from pipeline.store import connect
from pipeline.store.sql.connection import query

_SQL = sql_beside(__file__)

LABELS = ("yes", "partially", "no")
_COLUMNS = tuple("row question references answer label comment".split())  # noqa: SIM905  # one is a stage, too
# What a person can judge: free-form answers to questions with references. The id of an answer says
# nothing, and changes with its text; it begins with a letter, so that no spreadsheet makes a number
# of it.
LABELLED = 'len(options) = 0 and len("references") > 0 and problem is null and answer is not null'
ROW_SQL = """'r' || left(sha256(concat_ws(
  chr(31), method, repeat, document_id, question_id, answer)), 15) as row"""


def sheet(options: ReadOptions) -> tuple[str, int]:
    """CSV of `n=` answers, of all methods or those that `method=` begins, and their number.

    Stratified by method: each has the same share, or one more. The answers and their order are
    random by `seed=`. Raises UsageError.
    """
    with connect(options.warehouse, options.run) as connection:
        source = answers(connection, options.where, options.method)
        drawn = filled(
            _SQL["drawn"],
            row=ROW_SQL,
            labelled=LABELLED,
            source=source,
            n=str(options.n),
            seed=str(options.seed),
        )
        rows = query(connection, drawn)
    if not rows:
        raise UsageError(
            "no answer to label: it needs free-form questions with references, and answers without "
            "a problem; see where=, method=, run="
        )
    return csv_text([_shown(row) for row in rows], _COLUMNS), len(rows)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "references": "\n".join(row["references"])}
