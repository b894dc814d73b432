import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from amortes import Float, Optimizer
from tests.lab.browser.conftest import PATIENCE, Lab, enter

expect.set_options(timeout=PATIENCE)
PROGRAM = """
import sys, pathlib, time
from amortes import Float, minimize

def slow(config):
    flag = pathlib.Path(sys.argv[2])
    while not flag.exists():  # goes on when the test says so
        time.sleep(0.02)
    flag.unlink()
    return (config["x"] - 0.3) ** 2

minimize(slow, {"x": Float(0, 1)}, 3, state=sys.argv[1], progress=False)
"""


@pytest.fixture
def own_lab(browser: Browser, tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.kill()


def test_nothing_confirmed_is_lost_by_a_kill(page: Page, own_lab: Lab) -> None:
    lab = own_lab
    Optimizer({"x": Float(0, 1)}).save(lab.folder / "run.json")
    enter(page, lab)
    page.get_by_role("link", name="run").click()
    page.get_by_role("button", name="Go on with it here").click()
    page.get_by_role("button", name="Suggest").click()
    page.locator("#value-0").fill("0.5")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Trial 0 is saved with 0.5.")).to_be_visible()
    lab.kill()
    assert Optimizer.load(lab.folder / "run.json").trials[0].value == 0.5
    page.get_by_role("button", name="Suggest").click()
    expect(page.locator(".message.wrong").first).to_contain_text("does not answer")
    page.get_by_text("Add an experiment of your own", exact=True).click()
    page.locator("#own").get_by_label("x", exact=True).fill("0.25")
    lab.start()
    page.locator("#own").get_by_role("button", name="Add").click()  # the same page goes on
    expect(page.get_by_text("Trial 1 was added.")).to_be_visible()
    page.get_by_role("button", name="Undo").first.click()
    expect(page.locator(".trial")).to_have_count(0)
    assert len(Optimizer.load(lab.folder / "run.json").trials) == 1


def test_a_running_program_is_followed_and_left_alone(page: Page, lab: Lab, tmp_path: Path) -> None:
    state, flag = lab.folder / "tune.json", tmp_path / "go"
    command = [sys.executable, "-c", PROGRAM, str(state), str(flag)]
    with subprocess.Popen(command) as program:
        flag.touch()
        enter(page, lab)
        while not state.exists():
            assert program.poll() is None
            page.wait_for_timeout(50)
        page.goto(f"{lab.origin}/studies/tune.json")
        expect(page.get_by_text("A program is running.")).to_be_visible()
        expect(page.get_by_role("button", name="Suggest")).to_have_count(0)
        expect(page.locator("#row-0")).to_be_visible()
        page.evaluate("window.same = true")
        flag.touch()
        expect(page.locator("#row-1")).to_be_visible()
        refused = page.request.post(f"{lab.origin}/api/studies/tune.json/adopt")
        assert refused.status == 423
        while flag.exists():
            page.wait_for_timeout(20)
        flag.touch()
        expect(page.get_by_role("button", name="Go on with it here")).to_be_visible()
        expect(page.locator("#row-2")).to_be_visible()
        assert page.evaluate("window.same")  # without loading the page again
    assert program.returncode == 0
    assert not (lab.folder / "tune.lab.json").exists()
