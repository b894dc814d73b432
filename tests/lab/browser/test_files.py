"""Files that go into the lab and come out of it."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from amortes import Categorical, Float, Optimizer
from tests.lab.browser.conftest import PATIENCE, Lab, enter

expect.set_options(timeout=PATIENCE)
DROP = """([place, name, bytes]) => {
  const dropped = new DataTransfer();
  dropped.items.add(new File([new Uint8Array(bytes)], name));
  const how = { dataTransfer: dropped, bubbles: true, cancelable: true };
  const events = ["dragover", "drop"].map((kind) => new DragEvent(kind, how));
  for (const event of events) document.querySelector(place).dispatchEvent(event);
  return events.every((event) => event.defaultPrevented);
}"""
TABLE = "Sugar (g);Flavour;Result\n1,5;Käse;7\n2;Mandel;failed\n"


def drop(page: Page, place: str, content: bytes, name: str = "past.csv") -> None:
    assert page.evaluate(DROP, [place, name, list(content)])  # else the browser opens the file


def fill_form(page: Page, lab: Lab) -> None:
    enter(page, lab)
    page.goto(f"{lab.origin}/new")
    row = page.get_by_role("group", name="Parameter 1")
    row.get_by_label("Name").fill("sugar")
    row.get_by_label("Lowest").fill("0")
    row.get_by_label("Highest").fill("5")
    page.get_by_role("button", name="Add a parameter").click()
    row = page.get_by_role("group", name="Parameter 2")
    row.get_by_label("Name").fill("flavour")
    row.get_by_label("Kind").select_option("categorical")
    row.get_by_label("Choices").fill("Käse\nMandel")


@pytest.mark.parametrize("place", ["#table", "h1"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "windows-1252", "utf-16"])
def test_a_file_dropped_anywhere_on_the_form_is_read(
    page: Page, lab: Lab, place: str, encoding: str
) -> None:
    fill_form(page, lab)
    drop(page, place, TABLE.encode(encoding))
    expect(page.locator("#preview")).to_contain_text("2 results understood, 1 of them failed.")
    expect(page.locator("#preview td").nth(1)).to_have_text("Käse")
    expect(page.locator(".dropping")).to_have_count(0)


def test_a_file_can_be_chosen_and_chosen_again(page: Page, lab: Lab, tmp_path: Path) -> None:
    fill_form(page, lab)
    file = tmp_path / "past.csv"
    for text, says in ((TABLE, "2 results"), (TABLE + "3;Mandel;9\n", "3 results")):
        file.write_text(text, encoding="utf-8")
        page.get_by_label("Choose a file").set_input_files(file)
        expect(page.locator("#preview")).to_contain_text(f"{says} understood")


def test_what_is_no_text_is_refused(page: Page, lab: Lab) -> None:
    fill_form(page, lab)
    drop(page, "#table", b"PK\x03\x04\x00\x00", "past.xlsx")
    expect(page.locator(".message.wrong")).to_contain_text("past.xlsx is not a text file. Save")
    expect(page.locator("#table")).to_have_value("")


def test_a_file_dropped_on_a_study_is_added(page: Page, lab: Lab) -> None:
    space = {"sugar": Float(0, 5), "flavour": Categorical(["Käse", "Mandel"])}
    Optimizer(space).save(lab.folder / "sweets.json")
    enter(page, lab)
    page.goto(f"{lab.origin}/studies/sweets.json")
    expect(page.get_by_role("button", name="Go on with it here")).to_be_visible()
    drop(page, "h1", TABLE.encode())  # nothing to change here, but the page stays
    page.get_by_role("button", name="Go on with it here").click()
    expect(page.get_by_role("button", name="Suggest")).to_be_visible()
    drop(page, "h1", TABLE.encode())
    expect(page.locator("#paste-table")).to_be_focused()
    page.get_by_role("button", name="Add these results").click()
    expect(page.locator("#row-1")).to_contain_text("failed")
    statuses = [trial.status for trial in Optimizer.load(lab.folder / "sweets.json").trials]
    assert statuses == ["done", "failed"]


def test_a_report_of_a_hundred_results_is_four_pages(page: Page, lab: Lab) -> None:
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)})
    for i in range(100):
        opt.tell({"x": i / 99, "y": (37 * i % 100) / 99}, (i - 30.0) ** 2)
    opt.save(lab.folder / "printed.json")
    enter(page, lab)
    page.goto(f"{lab.origin}/studies/printed.json/report")
    printed = page.pdf(format="A4")
    assert printed.count(b"/Type /Page\n") <= 4
