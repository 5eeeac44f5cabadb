"""A plugin whose stages ask engines of other roles: recall.py has both."""
