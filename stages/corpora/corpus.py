"""The `corpus` section of the configuration. Its values stand in conf/corpus/, none here."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from stages.paragraphs import Paragraphs


class Corpus(BaseModel):
    """Where a corpus lies and how it is read. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    format: Literal["qmsum", "quality", "text", "tables"]
    path: Path  # a file or a folder, see the format's loader
    clean: Literal["none", "tags"]  # tags: leave out {vocalsound} and the like
    paragraphs: Paragraphs
