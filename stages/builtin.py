"""Makes every built-in stage, prompt and table known by its name, by importing their modules."""

from pipeline.plugins import import_all


def load_builtin() -> None:
    """Import every module of `stages`; what stands in one is found by its name from then on."""
    import stages

    import_all(stages)
