"""An engine, a metric, a judge, a tracker and a corpus format of a user's own, one module each."""
