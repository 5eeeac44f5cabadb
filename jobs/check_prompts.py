"""`gistmill prompts check`: the families of a folder, or all of ours."""

from pathlib import Path

from pipeline.family_check import check_family
from pipeline.settings import CONF


def check_prompts(folder: Path | None) -> list[str]:
    """One line per failure. Raises UsageError where the folder is no family."""
    shipped = sorted(path for path in (CONF / "prompts").iterdir() if path.is_dir())
    folders = [folder] if folder else shipped
    return [line for family in folders for line in check_family(family, [CONF / "prompts"])]
