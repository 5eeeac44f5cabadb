"""Stages that ask a model for verdicts on answers."""
