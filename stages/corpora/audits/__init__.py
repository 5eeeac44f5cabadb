"""Answers of known worth, to audit raters with: made by rules of a corpus."""
