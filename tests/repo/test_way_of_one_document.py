"""How many files of the product one document passes on its way from the command to the report."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.command import ROOT

MOST_FILES = 80
# A function counts when it is called, a module not by being imported. Threads count, too.
COUNT = """
import json, sys, threading
root, files = sys.argv[1] + "/", set()
def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root) and code.co_name != "<module>":
        files.add(code.co_filename[len(root):])
sys.argv = ["gistmill", *sys.argv[2:]]
sys.path.insert(0, root)
from jobs.cli import main
threading.setprofile(profile)
sys.setprofile(profile)
try:
    main()
finally:
    sys.setprofile(None)
    ours = ("pipeline/", "stages/", "jobs/", "gistmill/")
    print(json.dumps(sorted(file for file in files if file.startswith(ours))), file=sys.stderr)
"""


def test_one_document_passes_few_files(tmp_path: Path) -> None:
    words = ("experiment=demo", "limit=1", "methods=gist_only", "rater=none", "cluster=inline")
    run = subprocess.run(
        [sys.executable, "-c", COUNT, str(ROOT), "run", *words, f"warehouse={tmp_path / 'w'}"],
        capture_output=True, text=True, check=True, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    files = json.loads(run.stderr.splitlines()[-1])
    assert "stages/index/gist_pages.py" in files and "jobs/report/report.py" in files
    assert len(files) <= MOST_FILES, files
