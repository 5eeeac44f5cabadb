"""A plugin as a user would write one: a method that copies quotes out of the pages it looked up.

conf/method/quotes.yaml lists the stages; quote.py has a stage with its table, and the prompt it
asks; conf/prompts/generic/quote.jinja is the prompt's template.
"""
