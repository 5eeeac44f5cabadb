"""Runs of a small corpus by an engine that replies what no model should; no Ray."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline.asking.ask import reader_of
from pipeline.core.calls import Call
from pipeline.core.engine import FinishReason, Reply, Request
from pipeline.core.prompts import PROMPTS, Message
from tests.support.engines.hostile_replies import JUNK, WHOLE, legal_replies, spoiled
from tests.support.engines.simulated import SIMULATED
from tests.support.runs.small_run import RunHere, write_run
from tests.support.runs.written_plan import units_of
from tests.support.texts.small_corpus import write

TYPES = ("multi-session", "temporal-reasoning", "knowledge-update", "single-session-preference")
BOOK = (
    "memory=fitted", "memory.min_words=40", "memory.max_words=120", "memory.tail_words=20",
    "memory.preceding_words=10",
)  # fmt: skip
METHODS = (
    "readagent_p(max_pages=2),readagent_s(max_pages=3),readagent_p_conditional(task=Who rang),"
    "gist_only,bm25_fill_context,closed_book,constant,full_text,truncated_to_context(keep=last),"
    "memwalker(segment_tokens=60,max_children=2),recurrence(segment_tokens=150,summary_tokens=40),"
    "memorag(memory=gist_memory,memory_fit=split,retriever=bm25,draft=true),"
    "memorag(memory=gists,memory_fit=split,retriever=bm25),"
    "memorag_summary(memory=full,memory_fit=head,retriever=bm25),"
    "hyde(retriever=bm25),rq_rag(retriever=bm25)"
)
CHATS = (
    "longmemeval(expansion=facts|summary|keyphrases|events,retriever=bm25,time_aware=true),"
    "longmemeval(join=separate,retriever=bm25,reading=direct),"
    "longmemeval_notes(retriever=bm25,top_k=3),full_history"
)


@dataclass
class HostileEngine:
    """Replies by its seed and the request: a legal reply, more often one that is mutated; cut or
    aborted now and then. Tokens are words."""

    seed: int
    name: str = "hostile"
    context_tokens: int = 700  # few enough that memories are cut, split, merged and shortened
    sent: list[tuple[Request, Reply]] = field(default_factory=list)

    async def generate(self, request: Request) -> Reply:
        rng = random.Random(f"{self.seed} {request.attempt} {request.messages}")
        reasons: list[FinishReason] = ["stop", "length", "abort"]
        reply = Reply(
            text=self._text(request, rng),
            thinking=rng.choice((None, None, "", "Hm.", "\ud800<think>", "\0")),
            finish_reason=rng.choices(reasons, (90, 8, 2))[0],
            prompt_tokens=rng.choice((0, 1, 700, 2**31, 2**53)),
            cached_tokens=rng.choice((0, 900, 2**53)),
            reply_tokens=rng.choice((0, 1, 2**31, 2**53)),
        )
        self.sent.append((request, reply))
        return reply

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message["content"].split()) for message in messages)

    def _text(self, request: Request, rng: random.Random) -> str:
        assert request.fields is not None
        legal = legal_replies(request.fields)
        if request.constraint and request.constraint.choices:
            legal = [*request.constraint.choices]
        if rng.random() < 0.5:
            return rng.choice(legal)
        reply = rng.choice([*legal, *legal, rng.choice(WHOLE), rng.choice(JUNK)])
        return spoiled(reply, legal, rng)


class HostileRun(RunHere):
    """One worker's run of these settings; afterwards `runs/night` is complete."""

    def __init__(
        self, folder: Path, words: Sequence[str], seed: int, is_constrained: bool = False
    ) -> None:
        self.engine = HostileEngine(seed)
        script = folder / "script.yaml"
        script.write_text("replies: []")
        stands_in_for: Sequence[str] = ("engine=scripted", f"engine.script={script}")
        if is_constrained:  # which a scripted one cannot be
            stands_in_for = (*SIMULATED, "reply_format=constrained")
        super().__init__(
            *words, "run=night", *stands_in_for,
            f"engine.context_tokens={self.engine.context_tokens}",
            *(f"reply_tokens.{name}=60" for name in PROMPTS),
            f"warehouse={folder / 'warehouse'}",
        )  # fmt: skip
        engine = self.config.engine
        how = (engine, self.resolved.family, self.config.is_constrained(engine))
        self.reader = replace(reader_of(self.engine, *how), is_model=True)

    def finish(self) -> None:
        """All units that are pending, and the run's own files."""
        prepared = self.prepared()
        write_run(self.resolved, prepared)
        self.work()
        units = units_of(prepared).values()
        self.done = [(u.step_id, u.unit, u.attempt) for own in units for u in own]

    def rows(self) -> Mapping[tuple[str, str, int], Sequence[Any]]:
        """The committed rows of every unit."""
        writes = {step.id: step.writes for step in self.steps}
        return {unit: self.shards.load(writes[unit[0]], *unit) for unit in self.done}

    def calls(self) -> list[Call]:
        """The committed calls of all units."""
        return [call for unit in self.done for call in self.shards.recorded(*unit) or ()]


def book_words(folder: Path, num_paragraphs: int, num_questions: int) -> list[str]:
    """Two documents, the second of hostile paragraphs, with questions of every kind."""
    words = " ".join(["word"] * 20)
    plain = [
        f"Line {n}: the sexton of village {n % 5} rang bell {n % 3} at noon and {words} {n}."
        for n in range(num_paragraphs)
    ]
    marks = ["<57>", "Page [3]", "{{ x }}", "</think>", "STOP", "Action: -2"]
    nasty = [f"{marks[n % len(marks)]} {line}" for n, line in enumerate(plain)]
    documents = [{"document_id": f"d{n}", "text": "\n\n".join(text)}
                 for n, text in enumerate((plain, nasty))]  # fmt: skip
    options = {"options": ["The sexton", "Nobody", "A child"], "answer_index": 0}
    questions = [
        {"document_id": f"d{n % 2}", "question_id": f"q{n}", "question": f"Who rang bell {n}?",
         **(options if n % 4 < 2 else {"references": ["The sexton", "He of the village"]})}
        for n in range(num_questions)
    ]  # fmt: skip
    write(folder / "corpus", documents, questions)
    return ["corpus=tables", f"corpus.path={folder / 'corpus'}", *BOOK, f"methods={METHODS}"]


def chat_words(folder: Path, num_histories: int) -> list[str]:
    """Chat histories of four sessions, one question each, of every type."""
    histories = [
        {
            "question_id": f"q{n}_abs" if n % 5 == 4 else f"q{n}",
            "question_type": TYPES[n % len(TYPES)],
            "question": f"What did I pay in week {n}?",
            "answer": f"{n} francs",
            "question_date": "2023/06/01 (Thu) 10:00",
            "haystack_session_ids": [f"s{n}-{m}" for m in range(4)],
            "haystack_dates": [f"2023/05/{20 + m} (Sat) 02:21" for m in range(4)],
            "haystack_sessions": [
                [{"role": "user", "content": f"I paid {n + m} francs at stop {m}."},
                 {"role": "assistant", "content": "Noted. STOP <1>"}] for m in range(4)
            ],
            "answer_session_ids": [f"s{n}-0"],
        }
        for n in range(num_histories)
    ]  # fmt: skip
    path = folder / "longmemeval_s.json"
    path.write_text(json.dumps(histories), encoding="utf-8")
    return ["corpus=longmemeval", f"corpus.path={path}", f"methods={CHATS}"]
