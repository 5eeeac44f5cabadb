"""All pages, the latest first: a chat history as far as it fits."""

from collections.abc import Sequence
from typing import ClassVar

from pipeline.rows import Question
from stages.index.paginate import Page
from stages.retrieve.ranked_pages import RankedPages


class LatestPages(RankedPages):
    """The last pages of the document, as LongMemEval's full history keeps its latest sessions."""

    kind: ClassVar[str] = "latest"
    version: ClassVar[int] = 1

    def best(self, pages: Sequence[Page], question: Question) -> list[int]:
        return [page.page_index for page in reversed(pages)]
