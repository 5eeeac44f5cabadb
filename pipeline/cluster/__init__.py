"""Ray, and nothing but Ray: one of our own or one to join, and Ray Data executions over documents.

The driver sends ids and gets small summaries; workers read and write the warehouse themselves.
"""

import os

# Before ray is imported, which reads it then.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # else C++ warnings on the terminal
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # else worker deaths on stdout
# Else a thread of Ray Data that outlives a shutdown would start a Ray of its own.
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
from pipeline.cluster.actor import MakeWorker
from pipeline.cluster.execution import run_items
from pipeline.cluster.joining import join
from pipeline.cluster.pool import Pool

__all__ = ["MakeWorker", "Pool", "join", "run_items"]
