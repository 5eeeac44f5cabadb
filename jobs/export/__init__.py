"""`gistmill export`: answers, the report and views as files that other programs read."""
