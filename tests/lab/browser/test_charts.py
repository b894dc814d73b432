from playwright.sync_api import Page, expect

from amortes import Categorical, Float, Optimizer, Ordinal, Space
from amortes.optimiser.conditions import Condition
from tests.lab.browser.conftest import PATIENCE, Lab, enter

expect.set_options(timeout=PATIENCE)


def test_charts_follow_which_parameters_matter(page: Page, lab: Lab) -> None:
    space = Space(
        {"mixer": Categorical(["hand", "machine"]), "speed": Float(1, 9), "time": Float(0, 1)},
        conditions={"speed": Condition("mixer", ("machine",))},
    )
    Optimizer(space, start=[({"mixer": "hand", "time": 0.5}, 1.0)]).save(lab.folder / "mixer.json")
    api = f"{lab.origin}/api/studies/mixer.json"
    enter(page, lab)
    page.request.post(f"{api}/adopt")
    page.goto(f"{lab.origin}/studies/mixer.json")
    captions = page.locator("#slices figcaption")
    expect(captions).to_have_text(["mixer", "time"])
    expect(page.locator("#contour-gain .main-svg").first).to_be_visible()  # of mixer and time
    for x in (0.2, 0.4):
        config = {"mixer": "machine", "speed": 5, "time": x}
        page.request.post(f"{api}/trials", data={"config": config, "result": {"value": -9 - x}})
    expect(captions).to_have_text(["mixer", "speed", "time"])
    page.get_by_label("upwards").select_option("speed")
    expect(page.locator("#pair-note")).to_contain_text("do not always matter at the same time")
    expect(page.locator("#contour-gain")).to_be_hidden()
    page.get_by_label("across").select_option("time")
    expect(page.locator("#contour-gain")).to_be_visible()
    expect(page.locator("#pair-note")).to_be_hidden()
    expect(page.locator(".message.wrong")).to_have_count(0)


def show_three_results(page: Page, lab: Lab, opt: Optimizer) -> None:
    """Open the page of a run with three results, and wait for its last chart."""
    for value in (3.0, 1.0, 2.0):
        opt.tell(opt.ask(), value)
    opt.save(lab.folder / "three.json")
    enter(page, lab)
    page.goto(f"{lab.origin}/studies/three.json")
    expect(page.locator("#contour-gain .main-svg").first).to_be_visible()


def test_choices_may_be_numbers(page: Page, lab: Lab) -> None:
    kinds = {"heat": Categorical([200, 100]), "shape": Categorical([[1, 2], {"a": 1}])}
    opt = Optimizer({"size": Ordinal([16, 32, 64]), **kinds})
    show_three_results(page, lab, opt)
    shown = (["16", "32", "64"], ["200", "100"], ["[1,2]", '{"a":1}'])
    for chart, choices in zip(("slice-0", "slice-1", "slice-2"), shown, strict=True):
        low, high = page.evaluate(f"document.getElementById('{chart}').layout.xaxis.range")
        assert -1 <= low < 0
        assert len(choices) - 1 < high <= len(choices)
        assert page.locator(f"#{chart} .xtick").all_text_contents() == choices


def test_some_of_many_choices_are_shown(page: Page, lab: Lab) -> None:
    space = {"c": Categorical([f"c{i}" for i in range(100)]), "x": Float(0, 1)}
    past = [({"c": f"c{i}", "x": i / 99}, float(abs(i - 70))) for i in range(100)]
    Optimizer(space, start=past).save(lab.folder / "choices.json")
    enter(page, lab)
    page.goto(f"{lab.origin}/studies/choices.json")
    expect(page.locator("#contour-gain .main-svg").first).to_be_visible()
    for chart, most in (("slice-0", 41), ("contour-gain", 21)):
        shown = page.evaluate(f"document.getElementById('{chart}')._fullLayout.xaxis._categories")
        assert len(shown) == most
        assert "c70" in shown


def test_long_names_leave_room_for_the_chart(page: Page, lab: Lab) -> None:
    choices = [f"which-of-the-many-programs-{i:02d}" for i in range(12)]
    long = "the_number_of_all_the_things_that_can_be_counted"
    opt = Optimizer({"program": Categorical(choices), long: Float(0, 1)})
    show_three_results(page, lab, opt)
    ticks = page.locator("#slice-0 .xtick").all_text_contents()
    assert len(set(ticks)) == 12
    assert ticks[3] == "which-…ms-03"
    assert page.locator("#importance .ytick").all_text_contents()[0] == "the_number_o…_be_counted"
    for chart in ("slice-0", "contour-gain"):
        assert page.evaluate(f"document.getElementById('{chart}')._fullLayout._size.h") > 110


def test_charts_leave_out_what_would_flatten_the_rest(page: Page, lab: Lab) -> None:
    opt = Optimizer({"x": Float(0.5, 50, log=True), "y": Float(0, 1)})
    for value in (3.0, 1.0, 1e30, 2.0, 2.5, 1.5):
        opt.tell(opt.ask(), value)
    opt.tell(opt.ask(), failed=True)
    opt.save(lab.folder / "outlier.json")
    enter(page, lab)
    page.goto(f"{lab.origin}/studies/outlier.json")
    expect(page.locator("#contour-gain .main-svg").first).to_be_visible()
    for chart in ("convergence", "slice-0"):
        low, high = page.evaluate(f"document.getElementById('{chart}').layout.yaxis.range")
        assert -2 < low < 1
        assert 3 < high < 6
        expect(page.locator(f"#{chart}")).to_contain_text("1 result off the axis, up to 1e+30")
    ticks = page.evaluate("document.getElementById('slice-0').layout.xaxis.ticktext")
    assert ticks == ["0.5", "1", "2", "5", "10", "20", "50"]
