"""Workers whose Python finds a user's folder where gistmill's own packages should be."""

from collections.abc import Callable
from contextlib import suppress

import ray

from pipeline.core.errors import UsageError

_A_MODULE_OF_EACH = {"pipeline": "cluster/actor.py", "stages": "builtin.py", "jobs": "__main__.py"}
_SECONDS = 60.0


def refuse_shadowed_workers(error: ray.exceptions.RayActorError) -> None:
    """Raise UsageError, a single line that names the folder, where a worker did not start because a
    folder of the same name hides a package of gistmill's on its machine."""
    if "ModuleNotFoundError" not in str(error):
        return
    folder = None
    with suppress(ray.exceptions.RayError):  # then `error` is what there is to say
        folder = ray.get(ray.remote(_look()).options(num_cpus=0).remote(), timeout=_SECONDS)
    if folder:
        raise UsageError(
            f"{folder} hides gistmill's own package of that name from the workers; rename it, or "
            "take it out of their PYTHONPATH, then run the same command to resume"
        ) from None


def _look() -> Callable[[], str | None]:
    """A function that returns the folder, which Ray sends by value: nothing of ours can be imported
    where it is executed."""
    modules = dict(_A_MODULE_OF_EACH)

    def folder() -> str | None:
        from importlib.util import find_spec
        from pathlib import Path

        for name, module in modules.items():
            spec = find_spec(name)
            places = [*(spec.submodule_search_locations or ()), spec.origin] if spec else []
            if places and not (Path(str(places[0])) / module).exists():
                return str(places[0])
        return None

    return folder
