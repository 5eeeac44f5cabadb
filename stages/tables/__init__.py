"""The tables that stages write: the record class of each, its lines in a trace, and its SQL, if
any."""
