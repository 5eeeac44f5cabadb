"""Corpora in their native formats, one file each.

A loader yields one `Loaded` per document, in file order: the Document and its Questions. What
cannot be read is a row too, with problem `bad_input` and a `detail` of the form
`file:line: what is wrong; the mend`. Raises UsageError where the whole path is of no use.
"""

from collections.abc import Callable, Iterator

from pipeline.errors import UsageError
from stages.corpora.corpus import Corpus
from stages.corpora.loaded import Loaded
from stages.corpora.qmsum import load_qmsum
from stages.corpora.quality import load_quality
from stages.corpora.tables import load_tables
from stages.corpora.text import load_text

__all__ = ["LOADERS", "Corpus", "Loaded", "load"]
LOADERS: dict[str, Callable[[Corpus], Iterator[Loaded]]] = {
    "qmsum": load_qmsum,
    "quality": load_quality,
    "text": load_text,
    "tables": load_tables,
}


def load(corpus: Corpus) -> Iterator[Loaded]:
    """The corpus, one document at a time; see the loader of its format.

    Raises UsageError at once where the path is missing or the cleaning does not apply, and on
    the first `next` where the path holds nothing of this format.
    """
    if not corpus.path.exists():
        raise UsageError(f"{corpus.path}: no such file or folder; set corpus.path=...")
    if corpus.clean == "tags" and corpus.format != "qmsum":
        raise UsageError("corpus.clean=tags works on qmsum only; remove it")
    return LOADERS[corpus.format](corpus)
