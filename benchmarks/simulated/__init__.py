"""A plugin, `plugins=benchmarks/simulated`: an engine with the times of a GPU's and no model."""
