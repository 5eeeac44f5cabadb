"""Labels by people: sheets to fill in, and their agreement with raters and each other."""
