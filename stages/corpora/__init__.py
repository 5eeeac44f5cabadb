"""Loaders of text corpora in their published formats, one module per format.

A loader yields one `Loaded` per document, in file order: the Document and its Questions. Input
that cannot be read becomes a row too, with problem `bad_input` and a `detail` of the form
`file:line: what is wrong; what to do`. Raises UsageError where nothing at the path can be used.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from stages.corpora.column_mapping import RecordsCorpus
from stages.corpora.corpus import Corpus
from stages.corpora.huggingface import HuggingFaceCorpus
from stages.corpora.infinitebench import InfiniteBenchCorpus
from stages.corpora.leval import LEvalCorpus
from stages.corpora.loaded import Loaded
from stages.corpora.longbench import LongBenchCorpus
from stages.corpora.longbench_v2 import LongBenchV2Corpus
from stages.corpora.longmemeval import LongMemEvalCorpus
from stages.corpora.narrativeqa import NarrativeQACorpus
from stages.corpora.qmsum import QMSumCorpus
from stages.corpora.quality import QualityCorpus
from stages.corpora.scrolls import ScrollsCorpus
from stages.corpora.synthetic import SyntheticCorpus
from stages.corpora.tables import TablesCorpus
from stages.corpora.text import TextCorpus
from stages.corpora.ultradomain import UltraDomainCorpus

__all__ = ["AnyCorpus", "Corpus", "Loaded", "load"]
AnyCorpus = Annotated[
    TextCorpus
    | TablesCorpus
    | RecordsCorpus
    | HuggingFaceCorpus
    | NarrativeQACorpus
    | UltraDomainCorpus
    | QualityCorpus
    | QMSumCorpus
    | LongMemEvalCorpus
    | ScrollsCorpus
    | LongBenchCorpus
    | LongBenchV2Corpus
    | InfiniteBenchCorpus
    | LEvalCorpus
    | SyntheticCorpus,
    Field(discriminator="format"),
]


def load(corpus: Corpus) -> Iterator[Loaded]:
    """Load the corpus, one document at a time; details are in the module of its format.

    Raises UsageError at once where the path is missing or there is no such split, and on the
    first `next` where the path holds nothing of this format.
    """
    corpus.check()
    return corpus.load()
