"""Words, sentences, paragraphs, dates and ranking of plain text."""
