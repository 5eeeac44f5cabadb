"""One module per published format, and the synthetic corpus."""
