"""Headless Chromium, and what tests ask of a page in it."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--disable-dev-shm-usage",
)  # fmt: skip
_SECONDS = 60.0


class Browser:
    """A page that is open in Chromium; elements are found by CSS."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        """Load the address anew and wait for what it shows."""
        self.driver.get("about:blank")
        self.driver.get(address)
        self.wait("return document.querySelector('main h2, main .note') !== null")

    def go(self, hash: str) -> None:
        """Follow a link within the page."""
        self.run("window.gone = document.getElementById('main').firstChild")
        self.run(f"location.hash = {json.dumps(hash)}")
        self.wait("return !window.gone.isConnected")

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def wait(self, script: str) -> None:
        """Wait until the script returns true."""
        WebDriverWait(self.driver, _SECONDS, 0.05).until(lambda driver: self.run(script))

    def all(self, css: str) -> list[WebElement]:
        found: list[WebElement] = self.driver.find_elements("css selector", css)
        return found

    def texts(self, css: str) -> list[str]:
        """The texts of all elements, also of those out of sight."""
        found: list[str] = self.run(
            f"return [...document.querySelectorAll({json.dumps(css)})].map((e) => e.textContent)"
        )
        return found

    def unfold(self, css: str = "details") -> None:
        """Open all parts that are folded, also within others, and wait for what is in them."""
        self.wait(
            f"const found = [...document.querySelectorAll({json.dumps(css)})];"
            "const isWhole = found.every((part) => part.open && part.childElementCount > 1);"
            "found.forEach((part) => part.open = true);"
            "return isWhole"
        )

    def choose(self, name: str, value: str) -> None:
        """Choose an option of a filter."""
        self.run("window.gone = document.getElementById('main').firstChild")
        self.run(
            f"const s = document.querySelector('select[name=\"{name}\"]'); "
            f"s.value = {json.dumps(value)}; s.dispatchEvent(new Event('change'))"
        )
        self.wait("return !window.gone.isConnected")

    def resize(self, width: int, height: int = 900) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def overflow(self) -> int:
        """The pixels by which the body is wider than the window."""
        return int(
            self.run("const e = document.scrollingElement; return e.scrollWidth - e.clientWidth")
        )

    def complaints(self) -> list[str]:
        """What the console has said since this was last asked, also of what a policy blocked."""
        return [f"{entry['level']}: {entry['message']}" for entry in self.driver.get_log("browser")]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A Chromium with a profile of its own. Raises where Chromium or its driver is missing."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        raise RuntimeError("apt-get install chromium chromium-driver: tests of pages need them")
    options = ChromeOptions()
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        started = Chrome(options=options, service=Service(driver))
        try:
            yield Browser(started)
        finally:
            started.quit()
