"""A Ray with its dashboard, clusters' settings, object storage on loopback."""
