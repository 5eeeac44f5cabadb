"""Read: answer a question from what was retrieved."""
