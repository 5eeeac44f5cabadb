"""Tables for terminals, Markdown, CSV and JSON, without what a terminal would obey."""
