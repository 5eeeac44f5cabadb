"""How far a stage is with one unit. Advisory; a stage need not know of it."""

from dataclasses import dataclass, field

from pipeline.calls import Subject


@dataclass
class UnitProgress:
    """How far a stage is with one unit: `done` of `about` so many; null where nobody knows.

    Counted are the pages or questions of calls that have their replies, unless the stage says
    better (`tell`). What was replayed is done, but not asked.
    """

    done: int = 0
    about: int | None = None
    is_committed: bool = False
    _subjects: set[tuple[object, ...]] = field(default_factory=set)
    _is_told: bool = False
    _num_replies: int = 0
    _num_asked: int = 0

    def replied(self, subject: Subject) -> None:
        """Count a reply, whether asked, shared or replayed."""
        self._num_replies += 1
        self._subjects.add((subject.question_id, subject.page_index))
        if not self._is_told:
            self.done = len(self._subjects)

    def asked(self) -> None:
        """Count a call that was sent to the engine."""
        self._num_asked += 1

    def tell(self, about: int | None, done: int | None = None) -> None:
        """Set how many there are, and how many are done where replies do not say so."""
        self.about = about
        if done is not None:
            self.done, self._is_told = done, True

    @property
    def share(self) -> float:
        """The share that is done, from 0 to 1."""
        if self.is_committed:
            return 1.0
        return min(self.done / self.about, 1.0) if self.about else 0.0

    @property
    def asked_share(self) -> float:
        """The same without what was replayed or shared."""
        asked = self._num_asked / self._num_replies if self._num_replies else 1.0
        return self.share * min(asked, 1.0)  # a reply is counted a little later than its call
