"""The table of a run: means with intervals, costs by memory, and the facts to cite."""
