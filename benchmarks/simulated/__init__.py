"""A plugin, `plugins=benchmarks/simulated`: an engine with a GPU engine's times and no model."""
