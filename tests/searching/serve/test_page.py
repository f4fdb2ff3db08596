"""The page in a real browser: Debian's chromium, driven by playwright."""

import json
import re
import shutil
import time

import httpx
import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if CHROMIUM is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, "--disable-component-update"])
        yield opened
        opened.close()


@pytest.fixture
def visit(browser):
    """Open an address as a new visitor; a fault of the page, or a call to another host, fails the test."""
    contexts, faults = [], []

    def opening(address, **settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(90_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(address) else faults.append(request.url))
        page.goto(address)
        return page

    yield opening
    for context in contexts:
        context.close()
    assert [fault for fault in faults if not fault.startswith("data:")] == []


@pytest.fixture(scope="module")
def made_from(saved_model, sentences, tmp_path_factory):
    """A base, a model whose record names it, and the indexes of both."""
    from likewise import index

    folder = tmp_path_factory.mktemp("beside")
    (folder / "lines.txt").write_text("\n".join(sentences[:60]) + "\n")
    base, adapted = str(saved_model), str(folder / "mine")
    shutil.copytree(base, adapted)
    weights = load_file(f"{adapted}/model.safetensors")
    save_file(
        {name: one.flip(0) if one.ndim == 2 else one for name, one in weights.items()}, f"{adapted}/model.safetensors"
    )
    record = {"plan": {"job": "adapt"}, "files": [], "base": base, "status": "finished"}
    (folder / "mine" / "likewise.json").write_text(json.dumps(record))
    made = [folder / "of-mine.index", folder / "of-base.index"]
    for model, out in zip((adapted, base), made, strict=True):
        index(folder / "lines.txt", model=model, out=out, quiet=True)
    return base, adapted, made


def eventually(page, told, wanted):
    """Wait until a function of the page tells what is wanted."""
    end = time.monotonic() + 90
    while told() != wanted and time.monotonic() < end:
        page.wait_for_timeout(50)
    assert told() == wanted


def numbers(page, selector):
    return [float(text) for text in page.locator(selector).all_inner_texts()]


def test_typing_shows_the_similarities_of_both_models(visit, address, saved_model):
    page = visit(address)
    page.wait_for_selector("#pair .row")
    page.fill("#a", "the small cat")
    page.fill("#b", "the dog")
    page.locator("#b").press("End")
    page.locator("#b").press_sequentially(" near the river")
    second = page.input_value("#b")
    assert second == "the dog near the river"
    rows = SentenceTransformer(str(saved_model)).encode(["the small cat", second], normalize_embeddings=True)
    shown = page.locator("#pair .row > span:last-child")
    eventually(page, shown.all_inner_texts, [f"{rows[0] @ rows[1]:.3f}"] * 2)
    assert page.locator("#pair .name").all_inner_texts() == ["tiny", "again"]
    page.select_option("#second", "")
    eventually(page, shown.count, 1)


def test_a_list_becomes_a_heat_map_and_not_is_compared(visit, address, saved_model, sentences):
    page = visit(address)
    page.fill("#list", "\n".join(["", *sentences[:3], "  "]))
    eventually(page, page.locator("#heat .map:first-child tbody td").count, 9)
    rows = SentenceTransformer(str(saved_model)).encode(sentences[:3], normalize_embeddings=True)
    found = np.reshape(numbers(page, "#heat .map:first-child tbody td"), (3, 3))
    np.testing.assert_allclose(found, rows @ rows.T, atol=0.0051)
    page.wait_for_selector("#not .verdict")
    same, other = numbers(page, "#not .row:nth-of-type(-n+3) span:last-child")[:2]
    wanted = "meaning" if same > other else "words"
    assert page.locator("#not .verdict").first.inner_text() == f"Closer to the same {wanted}."


def test_passages_appear_while_one_types_and_the_sentence_is_marked(visit, address, sentences):
    page = visit(address)
    page.wait_for_selector("#pair .row")
    page.select_option("#mode", "words")
    page.fill("#query", sentences[41])
    page.wait_for_selector("#hits li")
    assert page.locator("#hits mark").first.inner_text() == sentences[41]
    place = page.locator("#hits .place").first.all_inner_texts()[0].split("\n")
    assert place[:2] == ["1.", "notes/heads.md:3"]
    assert "common words" in page.inner_text("#scale")
    page.fill("#query", "zebra")
    page.wait_for_selector("text=Nothing found.")
    page.fill("#query", "river -bridge")
    page.wait_for_selector("#hits li")
    told = page.locator("#hits .told").all_inner_texts
    assert told() == ['excluded: passages with "bridge"']
    phrase = " ".join(sentences[41].split()[:2])
    page.select_option("#mode", "hybrid")
    page.fill("#query", f'Where is "{phrase}" at home?')
    eventually(page, lambda: told()[:1], [f'ranked higher with: "{phrase}"'])
    page.fill("#query", f'"{phrase}"')
    eventually(
        page, lambda: [line.startswith(("only with: ", "first with: ")) and phrase in line for line in told()], [True]
    )


def test_search_stands_first_and_shows_what_each_part_gave(visit, address, client, sentences):
    page = visit(address)
    page.wait_for_selector("#pair .row")
    assert page.locator("section h2").first.inner_text() == "Search"
    page.fill("#query", sentences[7])
    page.wait_for_selector("#hits li")
    hits = client.post("/search", json={"query": sentences[7], "k": 5}).json()["hits"]
    first = hits[0]
    told = page.locator("#hits .sum").first.inner_text().replace("\u2212", "-")
    found = [float(number) for number in re.findall(r"(?:^|\n| )([+-]\d+\.\d\d)", told)]
    assert found == pytest.approx(list(first["scores"].values()), abs=0.0051)
    assert told.endswith(f"= {first['score']:.2f}")
    assert "may be in another order" in page.inner_text("#scale")
    widths = (
        page.locator("#hits .strip").first.locator(".part").evaluate_all("parts => parts.map(one => one.style.width)")
    )
    wanted = [100 * max(0, value) for value in first["scores"].values()]
    longest = max(sum(max(0, value) for value in hit["scores"].values()) for hit in hits)
    assert [float(width.rstrip("%")) for width in widths] == pytest.approx([one / longest for one in wanted], abs=0.1)


def test_an_adapted_model_stands_beside_its_base_and_says_what_changed(visit, running, made_from, tmp_path):
    base, adapted, indexes = made_from
    both = running({"base": base, "mine": adapted}, indexes=indexes)[0]
    page = visit(both)
    page.wait_for_selector("#pair .row")
    assert (page.input_value("#first"), page.input_value("#second")) == ("mine", "base")
    page.fill("#query", "the quiet river")
    page.wait_for_selector("#hits li")
    assert page.locator("#hits h3").all_inner_texts() == ["of-mine, by mine", "of-base, by base"]
    answers = [
        httpx.post(f"{both}/search", json={"query": "the quiet river", "k": 5, "index": name}).json()["hits"]
        for name in ("of-mine", "of-base")
    ]
    texts = [[hit["text"] for hit in hits] for hits in answers]
    wanted = [
        f"number {texts[1].index(text) + 1} by base" if text in texts[1] else "not among the first 5 by base"
        for text in texts[0]
    ]
    assert [
        line.inner_text().split("\n")[-1] for line in page.locator("#hits > div:first-child .place").all()
    ] == wanted
    assert "not comparable" in page.inner_text("#scale")
    assert page.locator("#base").is_hidden()
    alone = visit(running({"mine": adapted}, indexes=indexes[:1])[0])
    alone.wait_for_selector("#pair .row")
    assert "mine was made from" in alone.inner_text("#base")
    assert alone.locator(".two:visible").count() == 0


def test_an_error_is_shown_and_goes_away(visit, address):
    page = visit(address)
    page.wait_for_selector("#pair .row")
    page.fill("#a", "a" * 40_000)
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "40,000 characters, more than 32,768" in alert.inner_text()
    page.fill("#list", "one\ntwo")
    eventually(page, page.locator("#heat .map:first-child tbody td").count, 4)
    assert alert.is_visible()  # another panel works; this one still does not
    page.fill("#a", "the cat")
    alert.wait_for(state="hidden")


def test_a_key_is_asked_for_where_one_is_wanted(visit, running, saved_model):
    page = visit(running({"tiny": saved_model}, keys=["secret"])[0])
    page.get_by_role("alert").wait_for()
    assert "API key" in page.get_by_role("alert").inner_text()
    page.fill("#key", "secret")
    page.get_by_role("button", name="Use it").press("Enter")
    page.wait_for_selector("#pair .row")
    assert not page.get_by_role("alert").is_visible()
    assert not page.locator("#searching").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_400_pixels_are_enough_every_field_has_a_name_and_the_keyboard_reaches_it(visit, address, scheme):
    page = visit(address, viewport={"width": 400, "height": 800}, color_scheme=scheme)
    page.wait_for_selector("#heat td")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    twelve = "\n".join(f"This is sentence number {number} of them" for number in range(12))
    page.fill("#list", twelve)
    eventually(page, page.locator("#heat .map:first-child tbody td").count, 144)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    sizes = page.locator("#heat .map").first.evaluate("map => [map.scrollWidth, map.clientWidth, map.scrollLeft = 50]")
    assert sizes[0] > sizes[1]  # and it is the map that scrolls
    assert page.locator("#heat .map").first.evaluate("map => map.scrollLeft") == 50
    paper, ink = (
        sum(map(int, re.findall(r"\d+", page.evaluate(f"getComputedStyle(document.body).{name}"))[:3]))
        for name in ("backgroundColor", "color")
    )
    assert (paper < 150 < 600 < ink) if scheme == "dark" else (ink < 150 < 600 < paper)
    fields = "input:visible, select:visible, textarea:visible"
    assert all(page.locator(fields).nth(i).evaluate("field => field.labels.length") for i in range(8))
    reached = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert reached >= {"first", "second", "a", "b", "said", "same", "other", "list", "query", "mode"}


def test_the_page_is_plain_and_lets_nothing_else_in(address):
    answer = httpx.get(address)
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert re.findall(r"https?://|<script>| style=| on\w+=", answer.text) == []
    assert httpx.get(f"{address}/page.js").headers["content-type"].startswith("text/javascript")
