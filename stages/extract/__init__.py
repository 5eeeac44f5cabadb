"""Text of documents that are not text files: PDF, EPUB, Word and web pages.

They are read in a process of their own (isolated.py), as a torn or hostile one may crash its
library, or take all memory or time. Libraries are those of the extra `documents`.
"""
