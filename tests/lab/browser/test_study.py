from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from amortes import Float, Optimizer
from amortes.optimiser.table import as_csv
from tests.lab.browser.conftest import PATIENCE, Lab, enter

expect.set_options(timeout=PATIENCE)


def test_a_study_from_the_form_to_the_report(page: Page, lab: Lab, tmp_path: Path) -> None:
    enter(page, lab)
    page.get_by_role("link", name="New study").first.click()
    page.get_by_label("Name of the study").fill("Bread & butter")
    page.get_by_label("What do you measure?").fill("height")
    page.get_by_label("Its unit").fill("cm")
    fill_parameter(page, 1, "water", "50", "90", unit="%")
    page.get_by_role("button", name="Add a parameter").click()
    fill_parameter(page, 2, "time", "1", "24", unit="h")
    page.get_by_role("button", name="Add a parameter").click()
    flour = page.get_by_role("group", name="Parameter 3")
    flour.get_by_label("Name").fill("flour")
    flour.get_by_label("Kind").select_option("categorical")
    flour.get_by_label("Choices").fill("rye\nwheat")
    page.get_by_label("Experiments at a time").fill("2")
    past = "Water (%)\tTime\tFlour\tHeight\n60,5\t4\trye\t7,5\n70\t10\twheat\t9\n"
    page.get_by_label("Paste them").fill(past)
    page.get_by_role("button", name="Check them").click()
    expect(page.get_by_text("2 results understood.")).to_be_visible()
    assert unnamed(page) == []
    page.get_by_role("button", name="Create the study").click()

    expect(page.get_by_role("heading", name="Bread & butter")).to_be_visible()
    file = lab.folder / "bread-butter" / "state.json"
    page.get_by_role("button", name="Suggest").click()
    expect(page.locator(".trial")).to_have_count(2)
    # By keyboard alone: the first result has the focus, Enter saves and goes to the next.
    expect(page.get_by_label("Height in cm").first).to_be_focused()
    page.keyboard.type("8,25")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Trial 2 is saved with 8.25.")).to_be_visible()
    assert Optimizer.load(file).trials[2].value == 8.25
    expect(page.locator("#value-3")).to_be_focused()
    page.get_by_text("failed, cost, note, other values").click()
    page.get_by_label("It failed: there is no result").check()
    page.locator("#note-3").fill("oven <broken>")
    page.locator("#trial-3").get_by_role("button", name="Save").click()
    expect(page.locator("#row-3")).to_contain_text("oven <broken>")

    page.get_by_role("button", name="Suggest").click()
    expect(page.locator(".trial")).to_have_count(2)
    expect(page.locator("#trial-4")).to_contain_text("Expected height")
    page.locator("#trial-5").get_by_role("button", name="Drop this suggestion").click()
    expect(page.locator(".trial")).to_have_count(1)
    page.get_by_text("Add an experiment of your own", exact=True).click()
    own = page.locator("#own")
    own.get_by_label("water").fill("75")
    own.get_by_label("time").fill("12")
    own.get_by_label("flour").select_option("wheat")
    own.get_by_label("Result, if you have it").fill("10.5")
    own.get_by_role("button", name="Add").click()
    expect(page.locator("#headline")).to_contain_text("10.5")
    page.get_by_role("button", name="Take back trial 6").click()
    expect(page.locator("#row-6")).to_have_count(0)
    expect(page.get_by_text("Trial 6 was dropped.")).to_be_visible()
    page.get_by_role("button", name="Undo").first.click()
    expect(page.locator("#row-6")).to_contain_text("10.5")
    page.get_by_role("button", name="Correct trial 6").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Result").fill("11")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator("#row-6")).to_contain_text("11")

    expect(page.locator("#recommended .big")).to_be_visible()
    expect(page.locator("#worth .big")).to_be_visible()
    for chart in ("convergence", "importance", "slice-2", "contour-gain"):
        expect(page.locator(f"#{chart} .main-svg").first).to_be_visible()
    assert unnamed(page) == []
    expect(page.locator(".modebar-btn[data-title*=Share]")).to_have_count(0)  # no uploads

    run = Optimizer.load(file)
    statuses = ["done", "done", "done", "failed", "pending", "withdrawn", "done"]
    assert [trial.status for trial in run.trials] == statuses
    assert run.trials[6].config == {"water": 75.0, "time": 12.0, "flour": "wheat"}
    page.get_by_text("Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Results (CSV)").click()
    download.value.save_as(tmp_path / "results.csv")
    assert (tmp_path / "results.csv").read_text() == as_csv(run.trials)
    for kind, start in (("PNG", b"\x89PNG"), ("SVG", b"<?xml"), ("JSON", b"{")):
        with page.expect_download() as download:
            page.get_by_role("link", name=f"({kind})").click()
        download.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(start)
    page.get_by_role("link", name="Report to print").click()
    expect(page.get_by_role("heading", name="What was found")).to_be_visible()
    expect(page.locator(".report")).to_contain_text("Best result (trial 6)")
    expect(page.locator(".figure svg").first).to_be_visible()
    expect(page.get_by_role("heading", name="Two parameters together")).to_be_visible()
    assert page.pdf()[:5] == b"%PDF-"


def test_mistakes_are_explained_where_they_are_made(page: Page, lab: Lab) -> None:
    enter(page, lab)
    page.goto(f"{lab.origin}/new")
    page.get_by_role("button", name="Create the study").click()
    expect(page.get_by_role("alert").first).to_contain_text("need your attention")
    expect(page.get_by_label("Name of the study")).to_be_focused()
    expect(page.get_by_label("Name of the study")).to_have_accessible_description(
        "This is missing."
    )
    page.get_by_label("Name of the study").fill("Mistakes")
    fill_parameter(page, 1, "x", "10", "5")
    page.get_by_text("Limits between parameters").click()
    page.get_by_role("button", name="Create the study").click()
    highest = page.get_by_label("Highest")
    expect(highest).to_be_focused()
    expect(highest).to_have_accessible_description(
        "The highest value must be above the lowest, which is 10."
    )
    highest.fill("ten")
    page.get_by_label("Formulas of limits").fill("x + y <= 3")
    page.get_by_role("button", name="Create the study").click()
    expect(highest).to_have_accessible_description("“ten” is not a number.")
    expect(page.locator("#constraints-error")).to_contain_text("has y, but the parameters are x")
    highest.fill("20")
    page.get_by_label("Formulas of limits").fill("")
    page.get_by_role("button", name="Create the study").click()
    expect(page.get_by_role("heading", name="Mistakes")).to_be_visible()

    page.get_by_role("button", name="Suggest").click()
    page.locator("#value-0").fill("warm")
    page.keyboard.press("Enter")
    expect(page.locator("#error-0")).to_have_text("“warm” is not a number.")
    expect(page.locator("#value-0")).to_have_value("warm")
    run = Optimizer.load(lab.folder / "mistakes" / "state.json")
    assert [trial.status for trial in run.trials] == ["pending"]


def test_two_tabs_do_not_overwrite_each_other(context: BrowserContext, lab: Lab) -> None:
    first, second = context.new_page(), context.new_page()
    enter(first, lab)
    first.goto(f"{lab.origin}/new")
    first.get_by_label("Name of the study").fill("Conflict")
    fill_parameter(first, 1, "x", "0", "1")
    first.get_by_label("Experiments at a time").fill("3")
    first.get_by_role("button", name="Create the study").click()
    first.get_by_role("button", name="Suggest").click()
    expect(first.locator(".trial")).to_have_count(3)
    with second.expect_response("**/api/studies/conflict"):  # its first look
        second.goto(first.url)
    expect(second.locator(".trial")).to_have_count(3)
    # The second tab does not notice by itself what the first one does.
    second.route(
        "**/api/studies/conflict",
        lambda route: (
            route.abort() if "if-none-match" in route.request.headers else route.continue_()
        ),
    )
    tell(first, 0, "1.5")
    tell(second, 0, "2.5")
    refusal = second.locator(".message.wrong").first
    expect(refusal).to_contain_text("has the result 1.5 now. Your entry 2.5 was not saved.")
    expect(second.locator("#row-0")).to_contain_text("1.5")
    file = lab.folder / "conflict" / "state.json"
    assert [trial.value for trial in Optimizer.load(file).trials] == [1.5, None, None]
    # What does not concern the other's change is saved.
    tell(first, 1, "3.5")
    tell(second, 2, "4.5")
    expect(second.get_by_text("Trial 2 is saved with 4.5.")).to_be_visible()
    assert [trial.value for trial in Optimizer.load(file).trials] == [1.5, 3.5, 4.5]


def test_a_change_that_was_not_seen_is_neither_undone_nor_replaced(page: Page, lab: Lab) -> None:
    opt = Optimizer({"x": Float(0, 1)}, start=[({"x": 0.5}, 1.0), ({"x": 0.6}, 2.0)])
    opt.save(lab.folder / "seen.json")
    api = f"{lab.origin}/api/studies/seen.json"
    enter(page, lab)
    page.request.post(f"{api}/adopt")
    page.goto(f"{lab.origin}/studies/seen.json")
    # The form was opened before the other's correction, which the page then shows behind it.
    page.get_by_role("button", name="Correct trial 0").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.request.put(f"{api}/trials/0/result", data={"value": 3.5})
    expect(page.locator("#row-0")).to_contain_text("3.5")
    dialog.get_by_label("Result").fill("9")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_contain_text("has the result 3.5 now. Your entry 9 was not saved.")
    dialog.get_by_role("button", name="Cancel").click()
    # Only the newest message offers to undo, and only what it is about.
    for number in (0, 1):
        page.get_by_role("button", name=f"Take back trial {number}").click()
        expect(page.get_by_text(f"Trial {number} was dropped.")).to_be_visible()
    expect(page.locator("#messages .action")).to_have_count(1)
    page.request.post(f"{api}/trials", data={"config": {"x": 0.7}, "result": {"value": 4}})
    page.locator("#messages .action").click()
    expect(page.locator(".message.wrong").last).to_contain_text("has changed since")
    run = Optimizer.load(lab.folder / "seen.json")
    assert [trial.status for trial in run.trials] == ["withdrawn", "withdrawn", "done"]

    page.get_by_text("About this study").click()
    notes = page.get_by_label("Notes")
    notes.fill("mine")
    page.request.patch(api, data={"notes": "theirs", "unit": "g"})
    save = page.locator("form.edit").get_by_role("button", name="Save")
    save.click()
    expect(page.locator("#edit-notes-error")).to_contain_text("in another window: “theirs”")
    assert page.request.get(api).json()["notes"] == "theirs"
    with page.expect_navigation():
        save.click()
    now = page.request.get(api).json()
    assert (now["notes"], now["unit"]) == ("mine", "g")


def test_a_click_may_come_before_the_first_look(page: Page, lab: Lab) -> None:
    opt = Optimizer({"x": Float(0, 1)}, start=[({"x": 0.5}, 1.25)])
    opt.save(lab.folder / "early.json")
    api = f"{lab.origin}/api/studies/early.json"
    enter(page, lab)
    page.request.post(f"{api}/adopt")
    looks: list[str] = []

    def fail_once(route: Route) -> None:
        looks.append(route.request.url)
        route.abort() if len(looks) == 1 else route.continue_()

    page.route(api, fail_once)
    page.goto(f"{lab.origin}/studies/early.json")
    page.get_by_role("button", name="Correct trial 0").click()
    expect(page.get_by_role("dialog").get_by_label("Result")).to_have_value("1.25")


def test_many_results_are_all_there(page: Page, lab: Lab) -> None:
    opt = Optimizer({"x": Float(0, 1)}, start=[({"x": i / 49}, i) for i in range(50)])
    opt.save(lab.folder / "many.json")
    enter(page, lab)
    page.goto(f"{lab.origin}/studies/many.json")
    expect(page.locator("#slice-0 .main-svg").first).to_be_visible()  # nothing moves after that
    page.locator("#row-0").scroll_into_view_if_needed()
    expect(page.locator("#row-0")).to_be_in_viewport()


def test_a_finger_scrolls_and_does_not_zoom(browser: Browser, lab: Lab) -> None:
    # Many columns: the table scrolls, and not the page.
    config = {f"parameter_{i}": 0.5 for i in range(9)}
    opt = Optimizer({name: Float(0, 1) for name in config}, start=[(config, 1.0)])
    opt.save(lab.folder / "touch.json")
    context = browser.new_context(
        has_touch=True, is_mobile=True, viewport={"width": 820, "height": 1180}
    )
    page = context.new_page()
    enter(page, lab)
    page.goto(f"{lab.origin}/studies/touch.json")
    page.get_by_role("button", name="Go on with it here").click()
    expect(page.get_by_role("button", name="Take back trial 0")).to_be_visible()
    expect(page.locator("#slice-0 .main-svg").first).to_be_visible()
    assert page.evaluate("document.getElementById('slice-0').layout.dragmode") is False
    assert page.evaluate("document.documentElement.scrollWidth") <= 820
    row = page.evaluate("document.querySelector('#results .scroll').getBoundingClientRect().right")
    button = page.get_by_role("button", name="Take back trial 0").bounding_box()
    assert button is not None
    assert button["x"] + button["width"] <= row  # in view without scrolling the table
    context.close()


def fill_parameter(page: Page, i: int, name: str, low: str, high: str, unit: str = "") -> None:
    row = page.get_by_role("group", name=f"Parameter {i}")
    row.get_by_label("Name").fill(name)
    row.get_by_label("Lowest").fill(low)
    row.get_by_label("Highest").fill(high)
    row.get_by_label("Unit").fill(unit)


def tell(page: Page, number: int, value: str) -> None:
    page.locator(f"#value-{number}").fill(value)
    page.locator(f"#value-{number}").press("Enter")
    expect(page.locator(".message").last).to_contain_text(f"rial {number}")


def unnamed(page: Page) -> list[str]:
    """Fields and buttons that a screen reader could not name."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("input, select, textarea, button, summary, a")]
            .filter((e) => !(e.labels?.length || e.ariaLabel || e.textContent.trim()))
            .map((e) => e.outerHTML)"""
    )
    return found
