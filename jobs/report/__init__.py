"""The table of a run: means with intervals, costs of its rows, and what they rest on."""
