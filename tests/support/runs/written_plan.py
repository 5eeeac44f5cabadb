"""Plans that tests write, and the units of those that `prepare` wrote."""

from collections.abc import Iterable, Sequence

from jobs.graph.phases import RunPlan
from jobs.graph.preparation import Prepared
from pipeline.store.runs.run_folder import RunFolder
from pipeline.work.units import PlannedDocument, Step, Unit


def units_of(prepared: Prepared) -> dict[str, Sequence[Unit]]:
    """The units of a prepared run, by document."""
    return {document.document_id: document.units for document in prepared.plan.documents()}


def documents(units: Iterable[Unit]) -> list[PlannedDocument]:
    """The documents of these units, of a word each."""
    by_id: dict[str, list[Unit]] = {}
    for unit in units:
        by_id.setdefault(unit.document_id, []).append(unit)
    return [PlannedDocument(name, 1, False, 0, own) for name, own in by_id.items()]


def plan_of(steps: Sequence[Step], units: Iterable[Unit]) -> RunPlan:
    """The plan of these units."""
    return RunPlan(steps, documents(units))


def write_units(folder: RunFolder, steps: Sequence[Step], units: Iterable[Unit]) -> None:
    """Write the planned units of a run, and nothing else of a plan."""
    plan = plan_of(steps, units)
    folder.plan(steps, plan.file)
