"""Estimates of a run's cost before anything runs: the real stages, prompts and executor process
documents with an engine that only counts tokens. No stage or prompt is named here."""
