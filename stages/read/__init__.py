"""Stages that answer a question from the pages, notes or summaries found for it."""
