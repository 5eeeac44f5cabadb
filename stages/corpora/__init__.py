"""Loaders of text corpora: formats/ has the published ones, own/ a user's own, reading/ what they
share, and audits/ answers to audit raters with.

A loader yields one `Loaded` per document, in file order: the Document and its Questions. Input that
cannot be read becomes a row too, with problem `bad_input` and a `detail` of the form `file:line:
what is wrong; what to do`. Raises UsageError where nothing at the path can be used.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.core.registry import is_ours
from stages.corpora.reading.corpus import FORMATS, Corpus, Loaded, plugin_documents

__all__ = ["Corpus", "Loaded", "corpus_of", "load"]


def corpus_of(section: Mapping[str, Any]) -> Corpus:
    """Raises UsageError for an unknown `format`, pydantic's ValidationError for wrong keys."""
    name = section.get("format")
    if not isinstance(name, str) or name not in FORMATS:
        formats = ", ".join(sorted(FORMATS))
        raise UsageError(f"corpus.format={str(name)[:80]}: no such format; there are {formats}")
    return FORMATS[name].model_validate(dict(section))


def load(corpus: Corpus) -> Iterator[Loaded]:
    """Load the corpus, one document at a time. Raises UsageError at once where the path or the
    split is missing, and on the first `next` where the path holds nothing of this format."""
    corpus.check()
    return corpus.load() if is_ours(type(corpus)) else plugin_documents(corpus)
