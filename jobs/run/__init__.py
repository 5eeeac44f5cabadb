"""Execute a run or resume it, retry what failed, rate and score later: the lock of a run, progress,
deadlines, compaction meanwhile, compatibility with the stored run."""
