"""Everything that uses Ray: start or join a cluster, execute documents with Ray Data, Ray jobs. The
driver sends ids and receives summaries; workers read and write the warehouse themselves."""

import os

# Ray reads these when it is imported.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # or C++ warnings appear on the terminal
os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # or worker deaths appear on stdout
# Or a Ray Data thread that outlives a shutdown would start another Ray cluster.
os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
from pipeline.cluster.joining import join
from pipeline.cluster.ray_data import Pool, execute_documents

__all__ = ["Pool", "execute_documents", "join"]
