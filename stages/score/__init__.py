"""Score: metrics of answers."""
