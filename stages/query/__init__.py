"""Question to the queries it is searched by."""
