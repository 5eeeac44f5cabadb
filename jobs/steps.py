"""The steps of a run, each after the steps it reads."""

import itertools
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from jobs.config import RunConfig
from pipeline.engine import EngineSettings
from pipeline.errors import UsageError
from pipeline.prompts import Family
from pipeline.stage import Stage
from pipeline.steps import Step
from stages.family import FamilySettings
from stages.gist import GistPages
from stages.index import INDEXES
from stages.methods import Method
from stages.paginate import PaginateByModel, PaginateUniform
from stages.rate import RateAnswers
from stages.retrieve import Dense
from stages.scores import ScoreAnswers

# Raise when loaders or sentence cutting change what a file becomes.
LOADING_VERSION = 1


class _Builder:
    """Makes steps of one run; remembers which step writes which table."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.prompts = Family(config.family_folder)
        self.family: FamilySettings = config.family_settings()
        self.documents = self._load("documents")
        self.indexes: dict[str, Step] = {}  # by what they are over; those that methods need

    def _load(self, table: str) -> Step:
        corpus = self.config.corpus
        return Step(
            corpus=corpus.name,
            name=table,
            version=LOADING_VERSION,
            table=table,
            settings=corpus.hashed(),
        )

    def memory(self) -> tuple[Step, Step, Step, Step]:
        """documents, questions, paginate, gist."""
        questions = self._load("questions")
        pages = self.step(self._paginate(), {})
        tokens = self.config.memory.gist_reply_tokens or self.family.reply_tokens.gist
        gists = self.step(
            GistPages(max_reply_tokens=tokens, page_breaks=self.config.corpus.page_breaks),
            {"pages": pages},
        )
        return self.documents, questions, pages, gists

    def index(self, method: Method, over: str, memory: Mapping[str, Step]) -> Step:
        """The index that `method` needs. Raises UsageError where its embedder is of no use."""
        if over not in self.indexes:
            embedder = self.config.embedder
            embedder.refuse_unusable(method.name)
            stage = INDEXES[over](
                model=embedder.identity(), chunk_words=embedder.chunk_words, embedder=embedder
            )
            self.indexes[over] = self.step(stage, memory)
        return self.indexes[over]

    def _paginate(self) -> Stage:
        memory, family = self.config.memory, self.family.pagination
        paragraphs, breaks = self.config.corpus.paragraphs, self.config.corpus.page_breaks
        if memory.pagination == "uniform":
            words = memory.words or family.uniform_words
            longest = memory.max_words or family.max_words
            return PaginateUniform(
                paragraphs=paragraphs, page_breaks=breaks, words=words, max_words=longest
            )
        chosen = {
            key: family_value if (own := getattr(memory, key)) is None else own
            for key, family_value in family.model_dump(exclude={"uniform_words"}).items()
        }
        tokens = self.family.reply_tokens.break_point
        try:
            return PaginateByModel(
                paragraphs=paragraphs, page_breaks=breaks, max_reply_tokens=tokens, **chosen
            )
        except ValidationError as error:
            wrong = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise UsageError(f"memory: {wrong}") from None

    def step(
        self,
        stage: Stage,
        reads: Mapping[str, Step],
        method: str | None = None,
        repeat: int = 0,
        engine: EngineSettings | None = None,
    ) -> Step:
        """A stage's step. Upstream: the documents, then what it reads, in the order it says."""
        asks = bool(stage.prompts)
        return Step(
            corpus=self.config.corpus.name,
            name=stage.name,
            version=stage.version,
            table=stage.writes.table,
            settings=stage.model_dump(mode="json"),
            prompts=self.prompts.shas(stage.prompts),
            engine=self.config.identity(engine or self.config.engine) if asks else None,
            method=method,
            repeat=repeat,
            upstream=(self.documents, *(reads[table] for table in stage.reads)),
            stage=stage,
        )

    def look_up_values(self, repeat: int) -> dict[str, Any]:
        """What methods leave to the family and the run, for their look-up."""
        tokens = self.family.reply_tokens
        return {
            "first_page": self.family.first_page,
            "max_reply_tokens": tokens.look_up,
            "answer_reply_tokens": tokens.answer,
            "answer_each_look_up": self.family.answer_each_look_up,
            "answer_words": self.family.answer_words,
            "seed": self.config.engine.seed,
            "repeat": repeat,
            "embedder": self.config.embedder,
        }

    def answer_values(self) -> dict[str, Any]:
        """The same for their answer."""
        return {
            "first_page": self.family.first_page,
            "answer_words": self.family.answer_words,
            "max_reply_tokens": self.family.reply_tokens.answer,
            "text": self.family.constant_answer,
        }


def run_steps(config: RunConfig) -> list[tuple[Step, EngineSettings | None]]:
    """Every step with the engine its phase runs on (null: none), upstream first.

    Raises UsageError for settings that contradict each other.
    """
    build = _Builder(config)
    documents, questions, pages, gists = build.memory()
    memory = {"pages": pages, "gists": gists}
    found: list[tuple[Step, EngineSettings | None]] = [(documents, None), (questions, None)]
    found += [(pages, config.engine), (gists, config.engine)]
    made = [
        _method_steps(build, method, repeat, memory)
        for method in config.expanded()
        for repeat in range(config.repeats)
    ]
    found += [(index, config.engine) for index in build.indexes.values()]
    return [*found, *itertools.chain.from_iterable(made)]


def _method_steps(
    build: _Builder, method: Method, repeat: int, memory: Mapping[str, Step]
) -> list[tuple[Step, EngineSettings | None]]:
    """look_up, answer, score, and a rate step per rater, of one method and repeat."""
    look, answer = method.stages(build.look_up_values(repeat), build.answer_values())
    engine = build.config.engine
    if isinstance(look, Dense):
        memory = {**memory, "embeddings": build.index(method, look.over, memory)}
    look_step = build.step(look, memory, method.name, repeat)
    answer_step = build.step(answer, {**memory, "lookups": look_step}, method.name, repeat)
    answers = {"answers": answer_step}
    score = ScoreAnswers(metrics=build.family.metrics)
    steps: list[tuple[Step, EngineSettings | None]] = [
        (look_step, engine),
        (answer_step, engine),
        (build.step(score, answers, method.name, repeat), None),
    ]
    rate = RateAnswers(max_reply_tokens=build.family.reply_tokens.rate)
    for rater in build.config.rater_engines():
        steps.append((build.step(rate, answers, method.name, repeat, rater), rater))
    return steps
