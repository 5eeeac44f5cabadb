"""Execute a run or resume it, retry what failed, rate and score later."""
