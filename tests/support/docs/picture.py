"""Make the picture of the README: the page of the run of its table, on all of QMSum. `make picture`
calls it; Chromium has to be installed."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.command import ROOT
from tests.support.docs.browser import chromium
from tests.support.docs.pages import README, commands, page

PICTURE = ROOT / "docs" / "run_page.png"
SIZE = (1280, 890)


def main(qmsum: Path) -> None:
    """Execute the README's commands, write the page of their run and save what is seen first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (command,) = commands(page(README))
        run = command.code.replace("tests/data/qmsum/val.jsonl", str(qmsum.resolve()))
        for code in (run, "gistmill report html=page.html"):
            words = code.replace("gistmill ", f"{sys.executable} -m gistmill ", 1)
            subprocess.run(["bash", "-euc", words], cwd=folder, check=True)
        with chromium() as browser:
            browser.resize(*SIZE)
            browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
            browser.open((folder / "page.html").as_uri())
            PICTURE.write_bytes(browser.driver.get_screenshot_as_png())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
