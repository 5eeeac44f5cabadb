"""`gistmill ask` and `chat`: questions to files and folders, each answered by a run; the answers,
with the passages that they rest on."""
