"""Begins a plugin with a folder that works, and checks one by a run that is killed and resumed."""
