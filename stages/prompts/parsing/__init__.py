"""Reading replies, whatever the prompt: lines, JSON, labels, and passages of a text."""
