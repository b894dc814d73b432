"""A browser and a lab in a process of its own; without a browser, these tests are skipped."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="no browser client: pip install playwright"
)
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright  # noqa: E402

TOKEN = "a-token-for-tests-0123456789"
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE = 60_000  # milliseconds; the machine may be busy
STAY = """{
  const set = window.setTimeout;
  window.setTimeout = (run, ms) => set(run, ms > 5000 ? 1e6 : ms);
}"""  # messages do not vanish before a slow machine has read them


class Lab:
    """`amortes lab` as users start it."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder, self.port = folder, port
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "amortes", "lab", str(self.folder), "--no-browser"]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "AMORTES_LAB_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address.endswith(f"?token={TOKEN}"), "the lab printed no address"
        self.origin = self.address.partition("/?")[0]
        self.port = int(self.origin.rpartition(":")[2])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no browser: install Debian's chromium (apt-get install chromium)")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab shared by tests that use studies of their own."""
    lab = Lab(tmp_path_factory.mktemp("lab"))
    yield lab
    lab.kill()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    context.add_init_script(STAY)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page on which no script may fail, and that asks nobody but the lab."""
    page = context.new_page()
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    hosts = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname or "inline"))
    yield page
    assert failures == []
    assert hosts <= {"127.0.0.1", "inline"}


def enter(page: Page, lab: Lab) -> None:
    """Open the address that the lab printed."""
    page.goto(lab.address)
    page.wait_for_url(f"{lab.origin}/")
