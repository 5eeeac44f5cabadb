"""The folder of a run: its manifest, its planned units, its families, people's labels."""
