"""Execute the phases of a run, one execution after another, with progress and limits, by Ray or by
one worker in this process."""

import uuid
from contextlib import suppress
from functools import partial

from jobs.graph.phases import Phase, with_scoring
from jobs.graph.preparation import Prepared
from jobs.run.graceful_stop import GracefulStop
from jobs.run.progress import Progress
from pipeline.asking.reader import start_reader
from pipeline.core.errors import CommandError, EndedError
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.units import Work
from pipeline.worker.progress import Summary
from pipeline.worker.worker import DOCUMENTS_OVER_SLOTS, execute_inline


class RunExecutor:
    """Executes the `plan` of one launch of a `run`; `progress` counts its calls and units. Keeps
    nothing else of `prepared`: what is committed takes a kilobyte a document."""

    def __init__(self, prepared: Prepared, folder: RunFolder) -> None:
        self.run, self.plan = prepared.run, prepared.plan
        self._cluster = prepared.run.config.cluster
        self._folder = folder
        self._launch = uuid.uuid4().hex
        self._publish = partial(folder.write_progress, self._launch)  # for `status`
        self.progress = Progress(
            self.plan.num_pending, self._publish, refused=folder.advisory.state
        )

    def execute(self, stop: GracefulStop) -> None:
        """Execute the phases, until `stop` has begun. Raises UsageError if there is no Ray to join,
        ClusterError if a local one does not start, and the errors of workers."""
        is_inline = self._cluster.name == "inline"
        if not is_inline:
            from pipeline.cluster import join  # imported here, as ray takes a second

            join(self._cluster.address)
        with self.progress:
            for phase in with_scoring(self.run.phases, self.plan):
                num_workers = (lambda: 1) if is_inline else phase.pool(self._cluster).size
                for execution, work in phase.executions(self.plan, num_workers):
                    with suppress(EndedError):  # units still in flight are not committed
                        self._execution(phase, execution.name, work, stop)
                    if stop.has_begun:
                        self.progress.ended = stop.reason
                        return

    def _execution(self, phase: Phase, name: str, work: Work, stop: GracefulStop) -> None:
        def done(outcome: Summary | CommandError) -> None:
            stop.done(outcome)
            if isinstance(outcome, Summary):
                self.progress.add(outcome)

        self.progress.start(name, work.num_documents, work.words)
        self._publish(self.progress.state())
        engine = phase.engine and phase.engine.of_run(self._folder.launched_at())
        replies = (self.run.family, self.run.config.reply_format)
        start = partial(start_reader, engine, *replies) if engine else None
        make = phase.make_worker(self._folder.path, self._launch, start)
        try:
            with stop.watch(self._folder, self._launch, self.progress.alive):
                if self._cluster.name == "inline":
                    in_flight = phase.slots + DOCUMENTS_OVER_SLOTS
                    execute_inline(make, in_flight, work, stop.should_stop, done)
                else:
                    from pipeline.cluster import execute_documents

                    tags = {"run": self._folder.path.name, "phase": name}  # of workers' metrics
                    pool = phase.pool(self._cluster)
                    execute_documents(make, pool, tags, work, stop.should_stop, done)
                if stop.failure:  # last, so that the other documents are committed
                    raise stop.failure
        finally:
            self._folder.took(self.progress.took())
