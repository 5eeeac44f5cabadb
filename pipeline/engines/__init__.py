"""Engines, one module or folder each; the embedder of texts; token counts without an engine."""
