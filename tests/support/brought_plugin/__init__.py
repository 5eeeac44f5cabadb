"""An engine, a metric, a judge and a corpus format of a user's own, one module each."""
