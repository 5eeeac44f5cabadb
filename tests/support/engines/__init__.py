"""Engines, models and servers for tests, and replies that no model should give."""
