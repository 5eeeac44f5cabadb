"""Histories of any length for LongMemEval's questions: evidence sessions among filler sessions.

    python haystacks.py longmemeval_oracle.json sharegpt.jsonl out.jsonl --tokens 1000000
    gistmill run corpus=longmemeval corpus.path=out.jsonl ...

After appendix A.2 of the LongMemEval paper and the authors' sample_haystack_and_timestamp.py, with
these differences. They shuffle the sessions and then date them in that order; here a filler's date
is drawn uniformly and decides its place. They may repeat fillers; here only when all others are
used. They mix three sources in fixed shares; here the file of fillers decides the mixture.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

Turns = list[dict[str, Any]]
DATE = "%Y/%m/%d (%a) %H:%M"
MONTH = timedelta(days=30)  # as the authors' script
# BERT's WordPiece makes 1.42 tokens of a word in the sessions of 16 published questions; the larger
# vocabularies of chat models make fewer.
TOKENS_PER_WORD = 1.3
_TURNS = ("session", "turns", "messages", "conversation", "conversations", "data")
_ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant"}


def main() -> None:
    """Write one question with its history per line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("questions", type=Path, help="as longmemeval_oracle.json")
    parser.add_argument("fillers", type=Path, help="sessions: LongMemEval's, ShareGPT, UltraChat")
    parser.add_argument("out", type=Path)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--sessions", type=int, help="of a history, evidence included")
    size.add_argument("--tokens", type=int, help="of a history, estimated as 1.3 per word")
    parser.add_argument("--first-date", type=_day, help="of fillers, as 2023/05/01")
    parser.add_argument("--last-date", type=_day)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = json.loads(given.questions.read_text(encoding="utf-8"))
    fillers = fillers_of(given.fillers, rows)
    if not fillers:
        sys.exit(f"{given.fillers}: no session in it can be a filler")
    with given.out.open("w", encoding="utf-8") as out:
        for row in rows:
            draw = Random(f"history {given.seed} {row['question_id']}")
            try:
                made = history(row, fillers, draw, given.sessions, given.tokens,
                               (given.first_date, given.last_date))  # fmt: skip
            except ValueError as wrong:
                sys.exit(f"{given.questions}: {row['question_id']}: {wrong}")
            out.write(json.dumps({**row, **made}, ensure_ascii=False) + "\n")


def fillers_of(file: Path, rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, Turns]]:
    """The sessions of a JSON list or of JSON lines that are no question's evidence, each once,
    with their ids. Evidence is recognized by its id or text, or by ids of the published files,
    `answer_...`."""
    gold = [session for row in rows for session in evidence(row)]
    ids, seen = {name for name, *_ in gold if name}, {_said(turns) for *_, turns in gold}
    found = list[tuple[str, Turns]]()
    for name, turns in (one for row in _rows(file) for one in _sessions(row)):
        own = _said(turns)
        if turns and own not in seen and name not in ids and not name.startswith("answer_"):
            seen.add(own)
            found.append((name or f"filler_{len(found)}", turns))
    return found


def _said(turns: Turns) -> str:
    return "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)


def _rows(file: Path) -> Iterator[Any]:
    with file.open(encoding="utf-8") as lines:
        if lines.read(1) == "[" and not file.name.endswith("jsonl"):
            lines.seek(0)
            yield from json.load(lines)
        else:
            lines.seek(0)
            yield from (json.loads(line) for line in lines if line.strip())


def _sessions(row: Any) -> Iterator[tuple[str, Turns]]:
    """The sessions of a row, which is a list of turns, an object with such a list, or a
    LongMemEval question, whose evidence is left out. A turn is LongMemEval's `role` and
    `content`, ShareGPT's `from` and `value`, or a string as in UltraChat."""
    if isinstance(row, dict) and "haystack_sessions" in row:
        gold = {name for name, _, _ in evidence(row)}
        yield from ((name, turns) for name, _, turns in sessions(row) if name not in gold)
        return
    name, turns = "", row
    if isinstance(row, dict):
        name = str(row.get("session_id", row.get("id", "")))
        turns = next(row[key] for key in _TURNS if row.get(key) is not None)
    yield name, [_turn(turn, number) for number, turn in enumerate(turns)]


def _turn(turn: Any, number: int) -> dict[str, Any]:
    if isinstance(turn, str):
        return {"role": "assistant" if number % 2 else "user", "content": turn}
    role = turn.get("role", turn.get("from"))
    return {"role": _ROLES.get(role, role), "content": turn.get("content", turn.get("value"))}


def sessions(row: Mapping[str, Any]) -> list[tuple[str, str | None, Turns]]:
    """The id, the date and the turns of each session of a question's history."""
    num = len(row["haystack_sessions"])
    beside = (row.get(f"haystack_{key}") or [None] * num for key in ("session_ids", "dates"))
    found = zip(*beside, row["haystack_sessions"], strict=True)
    return [(name or "", date, turns) for name, date, turns in found if turns]


def evidence(row: Mapping[str, Any]) -> list[tuple[str, str | None, Turns]]:
    """The sessions named in `answer_session_ids`; all sessions where none is named."""
    own = row.get("answer_session_ids") or ()
    return [one for one in sessions(row) if one[0] in own] or sessions(row)


def history(
    row: Mapping[str, Any],
    fillers: Sequence[tuple[str, Turns]],
    draw: Random,
    num_sessions: int | None,
    num_tokens: int | None,
    dates: tuple[datetime | None, datetime | None],
) -> dict[str, Any]:
    """The columns of a question's history, by date: as many sessions as asked for, or the fewest
    that reach the tokens. Evidence keeps its dates, as answers depend on them. Raises ValueError
    where the evidence is too large, or no date is possible."""
    gold = evidence(row)
    size = sum(_size(turns, num_tokens) for *_, turns in gold)
    target = num_tokens or num_sessions or 0
    if size > target:
        raise ValueError(f"its evidence has {size:.0f} {'tokens' if num_tokens else 'sessions'}")
    chosen = [(name, date or "", turns) for name, date, turns in gold]
    order = list[int]()
    while size < target:
        order = order or draw.sample(range(len(fillers)), len(fillers))
        name, turns = fillers[order.pop()]
        chosen.append((name, "", turns))
        size += _size(turns, num_tokens)
    first, minutes = _interval(row, [date for _, date, _ in chosen if date], dates)
    drawn = iter(sorted(draw.randrange(minutes) for _, date, _ in chosen if not date))
    dated = [
        (name, date or (first + timedelta(minutes=next(drawn))).strftime(DATE), turns)
        for name, date, turns in chosen
    ]
    dated.sort(key=lambda one: datetime.strptime(one[1], DATE))
    names, when, turns_of = zip(*dated, strict=True)
    return {
        "haystack_session_ids": names, "haystack_dates": when, "haystack_sessions": turns_of,
    }  # fmt: skip


def _size(turns: Turns, num_tokens: int | None) -> float:
    return TOKENS_PER_WORD * len(_said(turns).split()) if num_tokens else 1


def _interval(
    row: Mapping[str, Any], known: Sequence[str], dates: tuple[datetime | None, datetime | None]
) -> tuple[datetime, int]:
    """The first possible minute of drawn dates, and the number of possible minutes: from 30 days
    before the first evidence (without dates: before the question; else May 2023) to 30 days
    after the last, but before the question is asked. Raises ValueError where there is none."""
    asked = row.get("question_date")
    when = [datetime.strptime(text, DATE) for text in known or ([asked] if asked else [])]
    first, last = (min(when) - MONTH, max(when) + MONTH) if when else (
        datetime(2023, 5, 1), datetime(2023, 5, 31, 23, 59))  # fmt: skip
    first = dates[0] or first
    last = dates[1] + timedelta(hours=23, minutes=59) if dates[1] else last
    if asked:
        last = min(last, datetime.strptime(asked, DATE) - timedelta(minutes=1))
    if last < first:
        raise ValueError(f"no date from {first:{DATE}} to {last:{DATE}}")
    return first, (last - first) // timedelta(minutes=1) + 1


def _day(text: str) -> datetime:
    return datetime.strptime(text, "%Y/%m/%d")


if __name__ == "__main__":
    main()
