"""The prompts of LongMemEval's design (section 5): keys, time ranges, notes, answers from chats."""
