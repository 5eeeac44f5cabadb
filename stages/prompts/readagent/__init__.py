"""The prompts of ReadAgent (sections 3 and 4.1), and the answer that most methods share."""
