"""The pipeline's machinery, independent of the stages; docs/architecture.md has its rooms."""
