"""Every measurement that needs a GPU, unattended: `make bench-gpu`, or `python -m benchmarks.gpu`.

__main__.py     the parts of `gistmill bench` one after the other, each to a JSON file
dummy_model.py  a model's config and tokenizer, generated; vLLM makes dummy weights
paper_limit.py  tokens per second that a card's data sheet allows
"""
