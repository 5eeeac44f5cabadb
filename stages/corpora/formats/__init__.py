"""One module per published format; the synthetic corpus; chat files that fill compiled
histories."""
