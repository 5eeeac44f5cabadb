"""Answer from retrieved chats (LongMemEval section 5.5, figure 13: the prompt without notes)."""

from dataclasses import dataclass
from typing import ClassVar

from stages.prompts.parsing.passages import DATE, OPTIONS, QUESTION, Passage
from stages.prompts.readagent.answer import AnswerQuestion

CHATS = (
    Passage("text", None, "[2023/05/02 (Tue) 10:01]\nuser: I moved to {{ Bern }}. <3>"),
    Passage("text", None, '{"date": "2023/05/09", "user": "{% My %} cat \\n rang the bell."}'),
)


@dataclass(frozen=True)
class AnswerFromChats(AnswerQuestion):
    """Answer the question from the passages: chats by date, each with its date in its text, or
    notes on them. Fields and value are `AnswerQuestion`'s."""

    name: ClassVar[str] = "answer_chats"
    max_reply_tokens: ClassVar[int] = 500

    @classmethod
    def samples(cls) -> tuple["AnswerFromChats", ...]:
        return (
            cls(CHATS, QUESTION, OPTIONS, answer_words=8104, asked_at=DATE),
            cls(CHATS, QUESTION, (), answer_words=8104, asked_at=DATE),
            cls(CHATS, QUESTION, (), answer_words=None),
            cls((), QUESTION, (), answer_words=8104, asked_at=DATE),
        )
