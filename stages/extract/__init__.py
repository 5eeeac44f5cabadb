"""Text of documents that are not text files: PDF, EPUB, Word and web pages.

They are read in a separate process (isolated.py), since a damaged or hostile file may crash its
library, or take all memory or time. The libraries are those of the extra `documents`.
"""
