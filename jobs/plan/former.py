"""What a former run of the same engine tells: its habits, and how fast it was."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.config import RunConfig
from jobs.grow import stored_config
from pipeline.engine import EngineSettings
from pipeline.errors import UsageError
from pipeline.place import AnyPath
from pipeline.store import connect, query, run_name
from pipeline.store.runs import RunFolder
from stages.planning import Habits

_LEAST_CALLS = 10  # of a prompt, before they tell what is usual
_PROMPTS = """
select prompt, count(*) as calls, avg(reply_tokens) as reply_tokens
from calls where not is_shared and problem is null group by prompt"""
_GISTS = """
select sum(g.num_words) / nullif(sum(p.num_words), 0) as share, count(*) as pages
from pages p join gists g using (document_id, page_index) where g.gist is not null"""
_LOOK_UPS = """
select s.settings::json ->> 'strategy' as strategy, avg(n) as pages,
  avg((s.settings::json ->> 'max_pages')::int) as most
from (select step_id, document_id, question_id, sum(len(used)) as n
  from lookups where problem is null group by all) join steps s using (step_id) group by all"""
_READ = """
select coalesce(sum(prompt_tokens - cached_tokens), 0)::bigint as uncached,
  coalesce(sum(reply_tokens), 0)::bigint as reply, coalesce(sum(c.seconds), 0) as seconds
from calls c join steps s using (step_id) where not is_shared and s.stage <> 'rate'"""


@dataclass(frozen=True)
class Former:
    """A run that stands. `engine_seconds` are those of all its engines together, reading."""

    run: str
    engine: Mapping[str, Any]  # identity
    habits: Habits
    uncached_tokens: int
    reply_tokens: int
    engine_seconds: float
    how: str

    def is_of(self, settings: EngineSettings) -> bool:
        return settings.identity() == self.engine

    def prefill_rate(self, reply_costs: float) -> float | None:
        """Uncached prompt tokens a second, a reply's token taking as long as so many of them."""
        if not self.engine_seconds:
            return None
        return (self.uncached_tokens + reply_costs * self.reply_tokens) / self.engine_seconds


def former(warehouse: AnyPath, run: str, config: RunConfig) -> Former:
    """Raises UsageError where there is no such run, or another engine read it."""
    name = run_name(warehouse, run)
    folder = RunFolder(warehouse, name)
    before = stored_config(folder)
    if before.engine.identity() != config.engine.identity():
        raise UsageError(
            f"--like {run}: {before.engine.title} read it, now {config.engine.title} shall; name a "
            "run with the same engine and settings"
        )
    with connect(warehouse, name) as connection:
        (read,) = query(connection, _READ)
        habits = _habits(connection)
    seconds, how = _seconds(folder, read["seconds"], before.engine.sequences)
    return Former(
        run=name,
        engine=before.engine.identity(),
        habits=habits,
        uncached_tokens=read["uncached"],
        reply_tokens=read["reply"],
        engine_seconds=seconds,
        how=how,
    )


def _seconds(folder: RunFolder, calls_seconds: float, sequences: int) -> tuple[float, str]:
    """The reading phases' seconds, each worker's added; where they were not kept, the calls'."""
    kept = [launch["phases"] for launch in folder.launches() if "phases" in launch]
    read = [p for phases in kept for p in phases if p["phase"].startswith("reading")]
    if read:
        return sum(p["seconds"] * p["workers"] for p in read), "its reading phases by the clock"
    how = "the seconds of its calls by the engine's sequences, as if none had stood idle"
    return calls_seconds / sequences, how


def _habits(connection: Any) -> Habits:
    usual = Habits()
    tokens = {
        row["prompt"]: max(1, round(row["reply_tokens"]))
        for row in query(connection, _PROMPTS)
        if row["calls"] >= _LEAST_CALLS and row["prompt"] != "gist"
    }
    (gists,) = query(connection, _GISTS)
    pages = {row["strategy"]: row for row in query(connection, _LOOK_UPS)}
    parallel, in_turn = pages.get("parallel"), pages.get("sequential")
    share, turns = usual.pages_share, usual.pages_in_turn
    return Habits(
        gist_share=float(gists["share"]) if gists["pages"] >= _LEAST_CALLS else usual.gist_share,
        pages_share=float(parallel["pages"] / parallel["most"]) if parallel else share,
        pages_in_turn=round(in_turn["pages"]) if in_turn else turns,
        reply_tokens={**usual.reply_tokens, **tokens},
    )
