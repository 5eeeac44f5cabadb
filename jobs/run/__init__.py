"""Execute a run or resume it: the lock of a run, progress, deadlines, compatibility with the stored
run."""
