"""Means with intervals, paired tests, and what raters' mistakes change of them."""
