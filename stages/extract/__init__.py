"""Text of PDF, EPUB and Word files and web pages, by the libraries of the extra `documents`, in a
separate process (isolated.py), since a damaged file may crash its library, or take all memory."""
