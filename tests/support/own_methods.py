"""Methods of a user's own: files in a plugin folder that holds nothing else."""

from pathlib import Path


def methods(folder: Path, **texts: str) -> str:
    """`plugins=...` for a folder with these methods, by name. One for each folder: a plugin stays
    loaded in its process."""
    plugin = folder / f"methods_of_{folder.name}"
    place = plugin / "conf" / "method"
    place.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (place / f"{name}.yaml").write_text(text, encoding="utf-8")
    return f"plugins={plugin}"


def file_of(plugins: str, name: str) -> Path:
    """The file of one of them."""
    return Path(plugins.partition("=")[2]) / "conf" / "method" / f"{name}.yaml"
