"""Pages in a real browser: Debian's chromium, headless, driven by selenium. Skipped with a reason where there is none."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from artifacts import make_site, small
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

PROGRAMS = ("chromium", "chromedriver")
PACKAGES = ("chromium", "chromium-driver", "fonts-liberation")
SECONDS = 60  # a guard against a hang, no expectation


class Browser:
    """A window onto the pages of a site."""

    def __init__(self, driver: Chrome, site: Path, shots: Path):
        self.driver, self.site, self.shots = driver, site, shots

    def open(self, page: str, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Loads a page of the site from disk and waits until it is there; its past in the console is forgotten."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.errors()
        self.driver.get((self.site / page).as_uri())
        self.wait("return document.readyState === 'complete'")

    def run(self, script: str, *arguments):
        """Value of a script with `return`, run in the page."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str) -> None:
        """Until the script returns something true."""
        WebDriverWait(self.driver, SECONDS).until(lambda driver: driver.execute_script(script), f"waited in vain for: {script}")

    def click(self, selector: str) -> None:
        """Clicks the first element of a CSS selector, as a finger or a mouse does."""
        self.show(selector)
        self.driver.find_element("css selector", selector).click()

    def show(self, selector: str) -> None:
        """Scrolls to the first element of a CSS selector."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'})", selector)

    def texts(self, selector: str) -> list[str]:
        return self.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent.trim())", selector)

    def errors(self) -> list[str]:
        """Errors in the console since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return self.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def shot(self, name: str) -> Path:
        """Picture of the whole page, in $IBTPO_SHOTS if set."""
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1}
        taken = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        path = self.shots / f"{name}.png"
        path.write_bytes(base64.b64decode(taken["data"]))
        return path


@pytest.fixture(scope="session")
def chromium() -> None:
    """Sees to it that chromium and its driver are there: installed from Debian where this process may do so."""
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            pytest.skip(f"no {' and no '.join(missing)} here, and no right to install it: apt-get install {' '.join(PACKAGES)}")
        command = ["apt-get", "install", "--yes", "--no-install-recommends", *PACKAGES]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})
        if done.returncode:
            pytest.skip(f"`{' '.join(command)}` failed: {done.stderr.strip().splitlines()[-1:]}")


@pytest.fixture(scope="session")
def driver(chromium, tmp_path_factory) -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = shutil.which(PROGRAMS[0])
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    profile = tmp_path_factory.mktemp("profile")  # nothing of the user's
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}"):
        options.add_argument(switch)
    with Chrome(options, Service(shutil.which(PROGRAMS[1]))) as made:
        yield made


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """Folder of a small site with hostile titles."""
    return make_site(small(), tmp_path_factory.mktemp("site"))


@pytest.fixture
def browser(driver, site, tmp_path) -> Browser:
    shots = Path(os.environ.get("IBTPO_SHOTS", tmp_path))
    shots.mkdir(parents=True, exist_ok=True)
    return Browser(driver, site, shots)
