"""`gistmill ask`: a question to files and folders, answered by a run."""
