"""All that a plugin imports, from one place; docs/extending.md explains each name.

These names stay even if the modules that define them move. Importing them does not load the
command, Ray or scipy.
"""

from pipeline.asking.ask import Ask
from pipeline.core.calls import Subject
from pipeline.core.engine import EngineSettings, Reply, Request
from pipeline.core.errors import UsageError
from pipeline.core.prompts import Asked, Message, Prompt
from pipeline.core.rows import (
    Document,
    IndexRow,
    Question,
    QuestionRow,
    Record,
    Span,
    UnitRows,
)
from pipeline.work.stage import Column, Stage
from stages.corpora.reading.corpus import FileCorpus, Loaded
from stages.corpora.reading.questions import Layout, QuestionLayout, RowsCorpus
from stages.corpora.reading.values import BadInputError, Row, text_of, texts_of
from stages.extract.extracted import Extracted, UnreadableError, extractor
from stages.index.context import Context, raw_pages
from stages.index.memorize import Memorize
from stages.index.paginate import Paginate, page_of
from stages.judge.rate import AnswerRater
from stages.prompts.answer import Passage
from stages.prompts.judging import YesOrNo
from stages.read.answer_from_context import AnswerFromContext
from stages.retrieve.look_up import RankedPages, used_pages
from stages.score.metrics import metric
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup
from stages.tables.pages import Gist, Page
from stages.text.excerpts import best_sentences
from stages.text.ranking import ranking
from stages.text.words import num_words

__all__ = [
    "Answer", "AnswerFromContext", "AnswerRater", "Ask", "Asked", "BadInputError", "Column",
    "Context", "Document", "EngineSettings", "Extracted", "FileCorpus", "Gist", "IndexRow",
    "Layout", "Loaded", "Lookup", "Memorize", "Message", "Page", "Paginate", "Passage", "Prompt",
    "Question", "QuestionLayout", "QuestionRow", "RankedPages", "Record", "Reply", "Request", "Row",
    "RowsCorpus", "Span", "Stage", "Subject", "UnitRows", "UnreadableError", "UsageError",
    "YesOrNo", "best_sentences", "extractor", "metric", "num_words", "page_of", "ranking",
    "raw_pages", "text_of", "texts_of", "used_pages",
]  # fmt: skip
