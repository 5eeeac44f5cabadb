"""Register every built-in stage, prompt and table under its name, by importing their modules."""

from pipeline.core.registry import import_all


def load_builtin() -> None:
    """Import every module of `stages`, which registers what it defines."""
    import stages

    import_all(stages)
