"""Every view in a real browser: on a real run, on a large generated one, on hostile names; by mouse and by keyboard."""

import json
import re

import pytest

import c3prof
from benchmarks.large_trace import large_trace
from c3prof.app.run import Run, analyzed, loaded
from c3prof.renderers.html import text
from tests.app.conftest import HOSTILE, events
from tests.browser.conftest import Page, served
from tests.kineto_files import document, written

pytestmark = pytest.mark.browser

VIEWS = ["Slowdown", "Collectives", "Ranks", "Tables", "Overview"]


@pytest.fixture(scope="module")
def real(shared_traces):
    run = Run((str(shared_traces / "a100_ddp_rank3of8.json.gz"),)).start(loaded, analyzed).wait()
    assert not run.error
    with served(run) as address:
        yield address


@pytest.fixture(scope="module")
def hostile_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    for rank in (0, 1):
        written(folder / f"rank{rank}.json", document(events(), rank=rank, world_size=2))
    return folder


@pytest.fixture(scope="module")
def hostile(hostile_files):
    runs = [Run((str(hostile_files),)).start(loaded, analyzed).wait() for _ in range(2)]
    assert not runs[0].error
    with served(*runs) as address:
        yield address


def test_every_view_of_a_real_run(page, real):
    page.open(real)
    for name in VIEWS:
        page.tab.get_by_role("link", name=name, exact=True).click()
        page.tab.wait_for_selector(f".nav-link.current:has-text('{name}')")
        page.tab.wait_for_timeout(700)
        assert page.tab.locator("h1").first.inner_text()
        page.shot(f"view-{name.lower()}")
    page.is_clean()


def settled(page) -> dict:
    """The state of the timeline once no answer is awaited."""
    page.until("!!(window.c3prof.timeline && window.c3prof.timeline.view && !window.c3prof.timeline.busy)")
    page.tab.wait_for_timeout(350)
    return page.tab.evaluate("(({begin, end, scroll}) => ({begin, end, scroll}))(window.c3prof.timeline.state)")


def length(state) -> float:
    return state["end"] - state["begin"]


def test_the_timeline_by_mouse_and_keyboard(page, real):
    page.open(f"{real}/timeline", "canvas.main")
    whole = settled(page)
    canvas = page.tab.locator("canvas.main")
    box = canvas.bounding_box()
    middle = (box["x"] + box["width"] * 0.6, box["y"] + 150)
    page.tab.mouse.move(*middle)
    page.tab.mouse.wheel(0, -400)
    assert length(settled(page)) < length(whole)
    before = settled(page)
    page.tab.mouse.down()
    page.tab.mouse.move(middle[0] - 150, middle[1], steps=5)
    page.tab.mouse.up()
    after = settled(page)
    assert after["begin"] > before["begin"]
    assert length(after) == pytest.approx(length(before))
    canvas.focus()
    page.tab.keyboard.press("w")
    closer = settled(page)
    assert length(closer) < length(after)
    page.tab.keyboard.press("d")
    assert settled(page)["begin"] > closer["begin"]
    page.tab.keyboard.press("f")
    assert length(settled(page)) == pytest.approx(length(whole))
    page.shot("view-timeline")
    page.is_clean()


def test_a_search_selects_shows_and_jumps(page, real):
    page.open(f"{real}/timeline", "canvas.main")
    settled(page)
    page.tab.keyboard.press("Tab")
    page.tab.get_by_label("Search a kernel or operator", exact=True).fill("allreduce")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector(".panel h2:has-text('AllReduce')")
    assert re.fullmatch(r"1 of \d+", page.tab.locator(".hits").inner_text())
    first = settled(page)
    page.tab.locator("canvas.main").focus()
    page.tab.keyboard.press("n")
    page.until("document.querySelector('.hits').textContent.startsWith('2 of')")
    assert settled(page)["begin"] > first["begin"]
    assert "Runs at the same time" in page.tab.locator(".panel").inner_text() or "RUNS AT" in page.tab.locator(".panel").inner_text()
    page.shot("timeline-selected")
    page.is_clean()


def test_a_link_reproduces_what_one_sees(page, real):
    page.open(f"{real}/timeline", "canvas.main")
    settled(page)
    page.tab.get_by_label("Search a kernel or operator", exact=True).fill("gemm")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector(".panel h2")
    page.until("location.search.includes('sel=')")
    seen = settled(page)
    name = page.tab.locator(".panel h2").inner_text()
    page.tab.wait_for_timeout(400)
    address = page.tab.url
    page.open(address, ".panel .span-link, .panel dl")
    page.until("!!(window.c3prof.timeline && window.c3prof.timeline.state.selected)")
    again = settled(page)
    assert again["begin"] == pytest.approx(seen["begin"], abs=2)
    assert again["end"] == pytest.approx(seen["end"], abs=2)
    assert page.tab.locator(".panel h2").inner_text() == name
    page.is_clean()


def test_hovering_tells_more(page, real):
    page.open(f"{real}/timeline", "canvas.main")
    settled(page)
    page.tab.get_by_label("Search a kernel or operator", exact=True).fill("ncclKernel")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector(".panel h2:has-text('nccl')")
    settled(page)
    spot = page.tab.evaluate(
        """() => { const t = c3prof.timeline, s = t.state.selected, box = t.canvas.getBoundingClientRect();
        const row = t.layout.rows.find((r) => r.lane && r.lane.key === s.lane);
        const scale = (t.width - c3prof.draw.GUTTER) / (t.state.end - t.state.begin);
        return [box.x + c3prof.draw.GUTTER + ((s.begin + s.end) / 2 - t.state.begin) * scale, box.y + c3prof.draw.RULER + row.y - t.state.scroll + row.height / 2]; }"""
    )
    page.tab.mouse.move(*spot)
    page.tab.mouse.move(spot[0] + 1, spot[1])
    page.until("!document.querySelector('.tooltip').hidden && document.querySelector('.tooltip').textContent.includes('operator')")
    page.is_clean()


def test_a_step_and_lanes_can_be_chosen(page, real):
    page.open(f"{real}/timeline", "canvas.main")
    whole = settled(page)
    page.tab.get_by_label("Go to a step").select_option(index=2)
    assert length(settled(page)) < length(whole) / 3
    before = page.tab.evaluate("c3prof.timeline.visible.length")
    page.tab.get_by_text("Lanes", exact=True).click()
    page.tab.get_by_label("stream 7", exact=True).uncheck()
    assert page.tab.evaluate("c3prof.timeline.visible.length") == before - 1
    page.is_clean()


def test_choosing_a_signature_shows_its_samples(page, real):
    page.open(f"{real}/slowdown")
    page.tab.wait_for_selector(".ag-row", timeout=30_000)
    before = page.tab.locator(".sample-title").inner_text()
    page.tab.locator(".ag-center-cols-container .ag-row").nth(4).click()
    page.until(f"document.querySelector('.sample-title').innerText !== {json.dumps(before)}")
    page.is_clean()


def test_a_finding_leads_to_the_view_that_shows_it(page, real):
    page.open(real)
    page.tab.locator(".findings a", has_text="exposed").first.click()
    page.tab.wait_for_selector("canvas.main")
    assert length(settled(page)) < page.tab.evaluate("c3prof.timeline.structure.end") / 4
    page.is_clean()


def test_a_hostile_name_is_text(page, hostile):
    page.open(hostile)
    for name in [*VIEWS, "Compare", "Timeline"]:
        page.tab.get_by_role("link", name=name, exact=True).click()
        page.tab.wait_for_selector(f".nav-link.current:has-text('{name}')")
        page.tab.wait_for_timeout(500)
        assert page.tab.locator("img[src='x']").count() == 0
    settled(page)
    page.tab.get_by_label("Search a kernel or operator", exact=True).fill("onerror")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector(".panel h2:has-text('onerror')")
    assert page.tab.locator(".panel h2").inner_text() == HOSTILE
    assert page.tab.evaluate("window.hacked") is None
    assert page.tab.locator("img[src='x']").count() == 0
    page.is_clean()


def test_the_report_opens_with_the_network_off(chromium, hostile_files, shared_traces, tmp_path):
    for name, source, width in (("hostile", hostile_files, 390), ("real", shared_traces / "a100_ddp_rank3of8.json.gz", 1_200)):
        path = tmp_path / f"{name}.html"
        path.write_text(text(c3prof.analyze(c3prof.load(source))), encoding="utf-8")
        assert path.stat().st_size < 10_000_000
        context = chromium.new_context(viewport={"width": width, "height": 800}, offline=True)
        page = Page(context.new_page())
        page.open(path.as_uri(), ".figure .main-svg")
        assert page.tab.evaluate("window.hacked") is None
        assert page.tab.locator("img[src='x']").count() == 0
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
        page.shot(f"report-{name}")
        page.is_clean()
        context.close()


@pytest.fixture(scope="module")
def large():
    trace = large_trace(400_000, ranks=8)
    run = Run(("large",)).start(lambda *_: trace, lambda *_: c3prof.analyze(large_trace(8_000, ranks=8))).wait()
    assert not run.error
    with served(run) as address:
        yield address


def test_a_large_run_stays_a_few_thousand_rectangles(page, large):
    sizes = []
    page.tab.on("response", lambda response: sizes.append(len(response.body())) if "/api/view" in response.url else None)
    page.open(f"{large}/timeline?ranks=0-7", "canvas.main")
    settled(page)
    canvas = page.tab.locator("canvas.main")
    canvas.focus()
    for key in "wwwwdddwwwwaassss":
        page.tab.keyboard.press(key)
        settled(page)
        assert int(page.tab.locator("#timeline").get_attribute("data-rectangles")) <= 6_000
    assert sizes
    assert max(sizes) < 1_000_000
    page.shot("timeline-large")
    page.is_clean()


def test_light_and_dark(page, real):
    page.open(real)
    light = page.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    page.tab.get_by_role("button", name="Light / dark").click()
    assert page.tab.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.tab.wait_for_timeout(600)
    page.shot("view-dark")
    page.tab.reload()
    page.tab.wait_for_selector(".page")
    assert page.tab.evaluate("document.documentElement.dataset.theme") == "dark"
    page.is_clean()


def test_the_first_load_is_small(page, real):
    sizes = []
    session = page.tab.context.new_cdp_session(page.tab)
    session.send("Network.enable")
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.open(real)
    page.tab.wait_for_timeout(2_000)
    assert 100_000 < sum(sizes) < 5_000_000


def test_a_token_is_asked_for_and_kept(page, hostile_files):
    run = Run((str(hostile_files),)).start(loaded, analyzed).wait()
    with served(run, token="a-long-token-for-tests") as address:
        assert page.tab.context.request.get(address).status == 401
        page.open(f"{address}/?token=a-long-token-for-tests")
        assert "token" not in page.tab.url
        page.open(f"{address}/timeline", "canvas.main")
        settled(page)
        page.is_clean()


def test_a_broken_trace_shows_its_error(page, tmp_path):
    path = tmp_path / "broken.json"
    path.write_text("<script>window.hacked=1</script>")
    run = Run((str(path),)).start(loaded, analyzed)
    with served(run) as address:
        page.open(address, "[role=alert]")
        assert "broken.json" in page.tab.locator("[role=alert]").inner_text()
        assert page.tab.evaluate("window.hacked") is None
        page.is_clean()
