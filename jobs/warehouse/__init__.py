"""Listing, inspection and maintenance of a warehouse: `gistmill ls`, status, schema, rm ..."""
