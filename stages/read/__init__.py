"""Read: the answer to a question, from what was retrieved."""
