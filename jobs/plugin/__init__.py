"""Begins a plugin with a folder that works."""
