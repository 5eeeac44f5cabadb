"""The reading of one question or document: rows, calls, prompts as they were sent."""
