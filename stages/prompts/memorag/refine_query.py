"""The next query of RQ-RAG's loop of retrieving and refining (arXiv 2404.00610, section 2.3).

The paper's model was trained to write an action, rewrite, decompose or disambiguate, and the query
that follows from it, or the answer; here any model is asked to, by a prompt.
"""

import re
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from pipeline.core.prompts import Prompt
from stages.prompts.parsing.lines import parse_lines
from stages.prompts.parsing.passages import DATE, MEMORY, OPTIONS, QUESTION, TEXT, Passage
from stages.text.ranking import terms

Action = Literal["rewrite", "decompose", "disambiguate"]
ACTIONS: tuple[Action, ...] = get_args(Action)
_ENOUGH = re.compile(r"\W*(ENOUGH\b|(?i:enough)\W*\Z)")


@dataclass(frozen=True)
class RefineQuery(Prompt[str]):
    """Ask for the next query. The value: the query; "" where what was found is enough.

    `action`: what is to be done with the question before anything was found; None: after that,
    where any may be.
    """

    name: ClassVar[str] = "refine_query"
    max_reply_tokens: ClassVar[int] = 128
    assumed: ClassVar[str] = "the question once, then nothing more"
    passages: tuple[Passage, ...]  # found so far
    question: str
    options: tuple[str, ...]
    queries: tuple[str, ...]  # searched for so far
    action: Action | None
    asked_at: str = ""  # the date of the question, where it has one

    def read(self, reply: str, is_cut: bool) -> str | None:
        """The first line, without a label; "" for one that begins with `ENOUGH`, which a lower-case
        "enough" alone is, too. None for a reply without a word or digit."""
        if _ENOUGH.match(reply):
            return ""
        lines = parse_lines(reply, is_cut)
        return lines[0] if lines else None

    def extractive(self) -> str:
        """The question; after that its terms that no passage has, if any."""
        if not self.queries:
            return self.question
        found = {term for passage in self.passages for term in terms(passage.text)}
        lacking = [word for word in self.question.split() if set(terms(word)) - found]
        query = " ".join(lacking)
        return "ENOUGH" if not query or query in self.queries else query

    def expected(self) -> str:
        return "ENOUGH" if self.queries else self.question

    @classmethod
    def samples(cls) -> tuple["RefineQuery", ...]:
        return (
            *(cls((), QUESTION, (), (), action) for action in ACTIONS),
            cls(MEMORY, QUESTION, OPTIONS, ("bell {{ rope }}",), None, asked_at=DATE),
            cls(TEXT, QUESTION, (), ("Who {% rang %}?", "Where?"), None),
        )
