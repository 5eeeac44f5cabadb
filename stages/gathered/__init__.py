"""Ask many documents at once: the pages that match a question become one document with its memory;
and find the passages of pages that an answer rests on."""
