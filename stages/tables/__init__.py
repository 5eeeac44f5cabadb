"""The tables that stages write: each with its record class, its lines in a trace, and
its SQL, if any."""
