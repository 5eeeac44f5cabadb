"""What stages and prompts use of plain text: words, paragraphs, ranking, excerpts."""
