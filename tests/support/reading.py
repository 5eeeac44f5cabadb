"""Stages run for real, without Ray or a store: rows to read, and engines to read them."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml

from pipeline.asking.ask import Ask, Capacity, Reader
from pipeline.asking.replies import Replies, SharedReplies
from pipeline.core.calls import Call
from pipeline.core.engine import Engine, FinishReason, Reply, Request
from pipeline.core.prompts import Message, Prompt
from pipeline.core.registry import import_installed
from pipeline.core.rows import Document, Question, Record, UnitRows
from pipeline.core.settings import CONF
from pipeline.engines.scripted import ScriptedEngine
from pipeline.families.family import Family, load_family
from pipeline.work.stage import Stage
from pipeline.work.units import mask_fields
from stages.prompts.answer import Passage
from stages.prompts.readagent_memory import PageGist
from stages.tables.lookups import Lookup
from stages.tables.pages import Gist, Page

import_installed()  # every stage, prompt and table: a family's file names prompts of all of them

FAMILIES = sorted(path.parent.name for path in (CONF / "prompts").glob("*/family.yaml"))
PLENTY = 1_000_000  # a context length, in tokens, that nothing here fills
NASTY = "{{ x }} {% raw %} {# note #} Page [3] \\n 'q' <b>STOP</b>"


@dataclass
class Listener:
    """Replies by a function of the request and keeps what it was asked. Tokens are words."""

    reply: Callable[[Request], str]
    context_tokens: int = PLENTY
    finish_reason: FinishReason = "stop"
    name: str = "listener"
    requests: list[Request] = field(default_factory=list)

    async def generate(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply(text=self.reply(request), finish_reason=self.finish_reason)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message["content"].split()) for message in messages)

    def prompts(self) -> list[str]:
        """The text of every request, in the order they came."""
        return [content(request) for request in self.requests]


def request(text: str = "one two", max_reply_tokens: int = 10, **changes: Any) -> Request:
    """A request for the gist of a text, which is the whole prompt."""
    message = Message(role="user", content=text)
    fields: dict[str, Any] = {"prompt": "gist", "fields": PageGist(page=text)}
    fields |= {"messages": (message,), "max_reply_tokens": max_reply_tokens, **changes}
    return Request(**fields)


def content(request: Request) -> str:
    (message,) = request.messages
    return message["content"]


def always(text: str, context_tokens: int = PLENTY) -> Listener:
    return Listener(lambda _: text, context_tokens)


def in_turn(*texts: str, context_tokens: int = PLENTY) -> Listener:
    """Replies one after the other; one request more than that fails."""
    left = list(texts)

    def reply(request: Request) -> str:
        assert left, f"asked once too often: {content(request)}"
        return left.pop(0)

    return Listener(reply, context_tokens)


def never() -> Listener:
    """An engine that must not be asked."""
    return in_turn()


def scripted(folder: Path, *rules: dict[str, Any], context_tokens: int = PLENTY) -> ScriptedEngine:
    path = folder / "script.yaml"
    path.write_text(yaml.safe_dump({"replies": list(rules)}, allow_unicode=True))
    return ScriptedEngine(str(path), context_tokens)


def deadline(*rules: dict[str, Any]) -> float:
    """Seconds to wait for a reply: few where one of the rules never gives one."""
    return 1.0 if any("hang" in rule for rule in rules) else 60.0


def family(name: str = "generic", reply_tokens: Mapping[str, int] | None = None) -> Family:
    """A shipped family; `reply_tokens` override its budgets, by prompt."""
    return _family(name, tuple(sorted((reply_tokens or {}).items())))


@cache
def _family(name: str, reply_tokens: tuple[tuple[str, int], ...]) -> Family:
    return load_family(CONF / "prompts" / name, [CONF / "prompts"], dict(reply_tokens))


def written_family(folder: Path, text: str = "", **keys: Any) -> Path:
    """A user's folder with nothing but a family.yaml: of this text, or of these keys."""
    folder = folder / "mine"
    folder.mkdir(exist_ok=True)
    (folder / "family.yaml").write_text(text or yaml.safe_dump(keys, allow_unicode=True))
    return folder


def num_tokens(prompt: Prompt[Any], prompts: str = "generic") -> int:
    """Tokens of a rendered prompt, as the engines here count them."""
    (message,) = family(prompts).render(prompt)
    return len(message["content"].split())


def reader_of(engine: Engine, **changes: Any) -> Reader:
    """A reader without sampling, with the generic family."""
    fields: dict[str, Any] = {
        "identity": "test", "is_model": True, "temperature": 0.0, "seed": 0, "family": family(),
        "deadline_seconds": 60.0, "slots": Capacity(4), **changes,
    }  # fmt: skip
    return Reader(engine=engine, **fields)


def run(
    stage: Stage,
    rows: UnitRows,
    engine: Engine,
    prompts: str | Family = "generic",
    shared: SharedReplies | None = None,
    reply_tokens: Mapping[str, int] | None = None,
    recorded: Sequence[Call] = (),
    **of_reader: Any,
) -> tuple[list[Any], tuple[Call, ...]]:
    """The rows the stage makes of the fields and tables that it names, checked by itself, and its
    calls. `reply_tokens` are budgets by prompt; `recorded` calls are not asked again."""
    chosen = family(prompts, reply_tokens) if isinstance(prompts, str) else prompts
    reader = reader_of(engine, family=chosen, **of_reader)
    seen = given_to(stage, rows)
    ask = Ask(reader, stage.name, rows.document.document_id, Replies(calls=recorded, shared=shared))
    made = list(asyncio.run(stage.run(seen, ask)))
    stage.check(seen, made)
    return made, ask.calls()


def given_to(stage: Stage, rows: UnitRows) -> UnitRows:
    """What a stage is given of these rows; a table of which there are none is empty."""
    return UnitRows(
        document=mask_fields(rows.document, stage.document_fields),
        questions=tuple(
            mask_fields(question, stage.question_fields) for question in rows.questions
        ),
        tables={record: rows.tables.get(record, ()) for record in stage.reads},
    )


def adding(rows: UnitRows, made: Mapping[type[Record], Sequence[Record]]) -> UnitRows:
    """The same rows, and tables beside or in place of theirs."""
    return replace(rows, tables={**rows.tables, **{k: tuple(v) for k, v in made.items()}})


def document(text: str) -> Document:
    return Document(document_id="d", text=text, num_words=len(text.split()))


def book(
    pages: Sequence[str],
    gists: Sequence[str] = (),
    questions: Sequence[Question] = (),
    lookups: Sequence[Lookup] = (),
) -> UnitRows:
    """A document whose pages are these, joined; `adding` puts other tables beside them."""
    ends = list(accumulate(len(text) for text in pages))
    page_rows = tuple(
        Page(
            document_id="d",
            page_index=index,
            start_char=end - len(text),
            end_char=end,
            text=text,
            num_words=len(text.split()),
            chosen_by="model",
        )
        for index, (text, end) in enumerate(zip(pages, ends, strict=True))
    )
    gist_rows = tuple(
        Gist(document_id="d", page_index=index, gist=gist, num_words=len(gist.split()))
        for index, gist in enumerate(gists)
    )
    return UnitRows(
        document=document("".join(pages)),
        questions=tuple(questions),
        tables={Page: page_rows, Gist: gist_rows, Lookup: tuple(lookups)},
    )


def question(question_id: str = "q", text: str = "Who rang the bell?", **more: Any) -> Question:
    return Question(document_id="d", question_id=question_id, question=text, **more)


def looked_up(*used: int, question_id: str = "q", turn: int = 0, **more: Any) -> Lookup:
    more = {"used": used, "requested": used, **more}
    return Lookup(document_id="d", question_id=question_id, turn=turn, **more)


def passages(rows: UnitRows, raw: Collection[int] = ()) -> tuple[Passage, ...]:
    """The memory by hand: `raw` pages in their gists' place."""
    return tuple(
        Passage("page", page.page_index, (page.text or "").strip())
        if page.page_index in raw
        else Passage("gist", page.page_index, gist.gist or "")
        for page, gist in zip(rows[Page], rows[Gist], strict=True)
    )
