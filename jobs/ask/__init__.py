"""`gistmill ask`: a question to files and folders, answered by a run; the answer, with the passages
that it rests on."""
