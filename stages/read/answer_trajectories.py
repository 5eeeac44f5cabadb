"""Answer each question once for each trajectory of a search, and choose among the answers (RQ-RAG,
arXiv 2404.00610, section 2.3)."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pipeline.asking.ask import Ask
from pipeline.core.rows import Question, QuestionRow, UnitRows
from stages.index.context import Context, raw_pages
from stages.read.answer_from_context import AnswerFromContext
from stages.retrieve.refine import needed_steps
from stages.tables.answers import Answer
from stages.tables.lookups import Lookup, Refinement
from stages.tables.pages import Page


class AnswerFromTrajectories(AnswerFromContext):
    """From the pages that each trajectory found, in document order; the answer is the one that
    agrees best with the others, by their shared words (of options: the most frequent letter), of
    several the first. The paper chooses by the likelihood that its model gives an answer
    (perplexity, confidence), or by the confidence of all trajectories with the same answer; a
    server says no likelihoods, and agreement is the last of these without them.
    """

    kind = "trajectories"
    version = 2
    reads = (Page, Refinement, Lookup)

    def context(self, rows: UnitRows, question: Question, used: Sequence[int]) -> Context:
        return raw_pages(rows, used, self.first_page)

    def needed(self, rows: UnitRows, question: Question) -> Sequence[QuestionRow]:
        return [*needed_steps(rows.of(Refinement, question)), *rows.of(Lookup, question)]

    async def answer_with_room(
        self, empty: Answer, rows: UnitRows, question: Question, ask: Ask
    ) -> Answer:
        """A call for each trajectory, of pages that there is room for; `detail` says which was
        chosen. Where each has a problem, the first with a text is. Where some found pages and none
        of these has room, those that found nothing do not answer for them."""
        steps = rows.of(Refinement, question)
        numbers = sorted({step.trajectory for step in steps})
        made = await asyncio.gather(
            *(self._of_trajectory(empty, rows, question, number, ask) for number in numbers)
        )
        fine = [n for n, answer in enumerate(made) if answer.answer and not answer.problem]
        overflows = [answer for answer in made if answer.problem == "context_overflow"]
        if overflows and not any(answer.page_indexes for answer in made):
            return overflows[0]
        if not fine:
            return next((answer for answer in made if answer.answer), made[0])
        words = [_words(answer) for answer in made]
        best = max(fine, key=lambda n: sum(_shared(words[n], words[m]) for m in fine if m != n))
        details = [f"trajectory {numbers[best]} of {len(numbers)}", made[best].detail]
        return replace(made[best], detail=", ".join(filter(None, details)))

    async def _of_trajectory(
        self, empty: Answer, rows: UnitRows, question: Question, number: int, ask: Ask
    ) -> Answer:
        steps = [step for step in rows.of(Refinement, question) if step.trajectory == number]
        used = [page for step in steps for page in step.used]
        return await self.answer_from(used, empty, rows, question, ask, turn=number)


def _words(answer: Answer) -> Counter[str]:
    chosen = answer.answer_index
    return Counter((answer.answer or "").lower().split() if chosen is None else [str(chosen)])


def _shared(one: Counter[str], other: Counter[str]) -> float:
    """F1 of the words, 0 to 1."""
    return 2 * (one & other).total() / max(1, one.total() + other.total())
