"""`python -m jobs.submit.wait_for_nodes HOST:PORT NUMBER MINUTES`: waits for a Ray's nodes to join.
Exits with code 4 if fewer have joined in time."""

import sys

from pipeline.cluster.ray_jobs import wait_for_nodes

if __name__ == "__main__":
    wanted, minutes = int(sys.argv[2]), float(sys.argv[3])
    joined = wait_for_nodes(sys.argv[1], wanted, 60 * minutes)
    if joined < wanted:
        sys.stderr.write(
            f"gistmill: {joined} of {wanted} nodes joined within cluster.wait_minutes={minutes:g}; "
            "submit the same script to resume\n"
        )
        sys.exit(4)
