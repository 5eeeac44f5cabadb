"""Stages that turn a question into the queries that pages are searched by."""
