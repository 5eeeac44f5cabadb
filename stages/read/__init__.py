"""From what was retrieved to the answer."""
