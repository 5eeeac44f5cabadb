"""Usage counters of a worker: for its heartbeat, the progress line and Ray's metrics."""

from dataclasses import dataclass

from pipeline.rows import Call


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
        """Count a call."""
        self.calls += 1
        self.prompt_tokens += call.prompt_tokens
        self.cached_tokens += call.cached_tokens
        self.reply_tokens += call.reply_tokens

    def committed(self, num_rows: int, num_problems: int) -> None:
        """Count a committed unit."""
        self.units += 1
        self.rows += num_rows
        self.problems += num_problems
