"""The plugins of docs/examples, each run from its own folder."""
