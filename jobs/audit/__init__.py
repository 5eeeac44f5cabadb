"""Rates of raters' mistakes about answers of known worth, and the means corrected for them."""
