"""Runs and warehouses that tests read: worked by hand, small, hostile, of every kind."""
