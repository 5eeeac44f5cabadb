"""The prompts of raters: ReadAgent's strict and permissive ones, LongMemEval's five rubrics."""
