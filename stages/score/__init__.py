"""Answer to metrics, evidence recall, and the measures of retrieval; calls no model."""
