"""Prompt families (a folder of templates and a family.yaml): found, checked and copied."""
