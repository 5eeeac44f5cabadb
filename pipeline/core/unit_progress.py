"""Progress inside a unit, and usage counters of a worker: for heartbeats, the progress line and
Ray's metrics. Advisory; a stage need not report any."""

from dataclasses import dataclass, field

from pipeline.core.calls import Subject
from pipeline.core.rows import Call


@dataclass
class UnitProgress:
    """The progress of a stage within one unit: `done` of `about` pages or questions; `about` is
    None while their number is not known.

    Counted are the pages or questions of calls that have their replies, unless the stage reports a
    number itself (`tell`).
    """

    done: int = 0
    about: int | None = None
    is_committed: bool = False
    _subjects: set[tuple[object, ...]] = field(default_factory=set)
    _is_told: bool = False

    def replied(self, subject: Subject) -> None:
        """Count a reply, whether asked, shared or replayed."""
        self._subjects.add((subject.question_id, subject.page_index))
        if not self._is_told:
            self.done = len(self._subjects)

    def tell(self, about: int | None, done: int | None = None) -> None:
        """Set the total, and how many are done if replies do not show it."""
        self.about = about
        if done is not None:
            self.done, self._is_told = done, True

    @property
    def share(self) -> float:
        """The share of the unit that is done, from 0 to 1."""
        if self.is_committed:
            return 1.0
        return min(self.done / self.about, 1.0) if self.about else 0.0


@dataclass(kw_only=True)
class UsageCounters:
    """Counters of a worker's process, or of one document. Tokens are the engine's."""

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of the prompt tokens
    reply_tokens: int = 0
    units: int = 0
    rows: int = 0
    problems: int = 0

    def called(self, call: Call) -> None:
        """Count a call and its tokens."""
        self.calls += 1
        self.prompt_tokens += call.prompt_tokens
        self.cached_tokens += call.cached_tokens
        self.reply_tokens += call.reply_tokens

    def committed(self, num_rows: int, num_problems: int) -> None:
        """Count a committed unit."""
        self.units += 1
        self.rows += num_rows
        self.problems += num_problems
