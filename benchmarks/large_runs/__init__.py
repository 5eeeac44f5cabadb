"""Warehouses of large runs, without their execution.

copied_rows.py  the rows of one document, under the ids of all
"""
