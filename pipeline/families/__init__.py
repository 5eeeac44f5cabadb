"""Prompt families (a folder of templates and a family.yaml): found, read and copied."""
