"""Score: metrics of answers, without a model."""
