"""`python -m jobs.submit.wait_for_nodes HOST:PORT NUMBER MINUTES`: wait for nodes of a Ray."""

import sys

from pipeline.cluster.ray_jobs import wait_for_nodes

if __name__ == "__main__":
    wanted, minutes = int(sys.argv[2]), float(sys.argv[3])
    there = wait_for_nodes(sys.argv[1], wanted, 60 * minutes)
    if there < wanted:
        sys.stderr.write(
            f"gistmill: {there} of {wanted} nodes joined within cluster.wait_minutes={minutes:g}; "
            "the same script goes on from here\n"
        )
        sys.exit(4)
