"""Engines, one module or folder each, and what they share: tokenizers, outages, embedders."""
