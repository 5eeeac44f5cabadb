"""One module per published format; the stories that NarrativeQA's script downloads; the synthetic
corpus."""
