"""Plain-text helpers of stages and prompts: words, paragraphs, BM25 ranking, excerpts."""
