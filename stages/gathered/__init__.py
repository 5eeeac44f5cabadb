"""Many documents asked at once: the pages of all that match a question, as one document that brings
its memory along; and the passages of pages that an answer rests on."""
