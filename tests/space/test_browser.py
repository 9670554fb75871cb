"""The app in a real browser: type a sentence, move sliders, check the page."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hf_xst.demo.small_models import example_sentences
from hf_xst.space.backend import MAX_TEXT, MAX_UPLOAD

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
STARTS_WITHIN, ANSWERS_WITHIN = 240, 60
httpx = pytest.importorskip("httpx", reason="gradio (the extra demo) is not installed")

pytestmark = pytest.mark.slow
for requirement, is_installed in (
    ("gradio (the extra demo)", find_spec("gradio") is not None),
    ("selenium (the extra dev)", find_spec("selenium") is not None),
    (str(CHROMIUM), CHROMIUM.exists()),
    (str(DRIVER), DRIVER.exists()),
):
    if not is_installed:
        pytest.skip(f"{requirement} is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the app on the invented languages and wait until it answers."""
    home = tmp_path_factory.mktemp("app")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"HF_HOME": str(home), "GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"}
    log = home / "log.txt"
    with log.open("w") as stream:
        command = [sys.executable, "-m", "hf_xst_cli", "space", "--port", str(port)]
        process = subprocess.Popen(command, env=os.environ | settings, stdout=stream, stderr=stream)
    try:
        deadline = time.monotonic() + STARTS_WITHIN
        while f"the app is at http://127.0.0.1:{port}/" not in log.read_text():
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(30)


class Page:
    """The page as a visitor uses it."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver = driver
        driver.get("about:blank")
        driver.get_log("browser")  # discard messages of the page that is left
        driver.get(address)
        self.until(lambda: "root" in self.text("#best pre.drawn"))

    def until(self, holds: Callable[[], Any]) -> None:
        from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        ignored = (NoSuchElementException, StaleElementReferenceException)
        WebDriverWait(self.driver, ANSWERS_WITHIN, 0.1, ignored).until(lambda _: holds())

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def count(self, selector: str) -> int:
        return len(self.driver.find_elements("css selector", selector))

    def text(self, selector: str) -> str:
        return str(self.find(selector).get_attribute("textContent"))

    def markup(self, part: str) -> str:
        """Return the markup of a result, without gradio's progress marks."""
        return str(
            self.find(f"{part} .sources" if part == "#marginals" else f"{part} svg.hf-xst").get_attribute(
                "innerHTML"
            )
        )

    def write(self, selector: str, value: object) -> None:
        """Replace the value of a field, and move to the next field."""
        from selenium.webdriver.common.keys import Keys

        self.find(selector).send_keys(Keys.CONTROL, "a")
        self.find(selector).send_keys(str(value), Keys.TAB)

    def read(self, sentence: str) -> None:
        self.write("#sentence textarea, #sentence input", sentence)
        self.find("#read").click()

    def move(self, slider: str, value: float) -> None:
        self.write(f"#{slider} input[type=number]", value)

    def changed(self, part: str, act: Callable[[], None]) -> None:
        """Act, and wait until a part of the page changes."""
        before = self.markup(part)
        act()
        self.until(lambda: self.markup(part) != before)

    def structures(self) -> float:
        """Read the number of structures in the chart."""
        match = re.search(r"holds (?:about ([\d.]+) · 10([⁰¹²³⁴-⁹]+)|([\d,]+)) ", self.text("#chart"))
        assert match, self.text("#chart")
        if match[3]:
            return float(match[3].replace(",", ""))
        return float(match[1]) * 10 ** int(match[2].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")))

    def places(self, selector: str) -> list[float]:
        """Return the left ends of elements on the screen, in the order of the page."""
        script = (
            "return [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect().left)"
        )
        return list(self.driver.execute_script(script, selector))


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver

    profile = tmp_path_factory.mktemp("profile")
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        f"--user-data-dir={profile}",
        "--window-size=1400,2400",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    try:
        yield browser
    finally:
        browser.quit()
        shutil.rmtree(profile, ignore_errors=True)


@pytest.fixture
def page(driver: Any, address: str) -> Page:
    return Page(driver, address)


LEFT_TO_RIGHT, RIGHT_TO_LEFT = (" ".join(sentence.words) for sentence in example_sentences()[2:4])


def test_typed_sentence_and_sigma(page: Page, tmp_path: Path) -> None:
    page.changed("#best", lambda: page.read(LEFT_TO_RIGHT))
    page.until(lambda: LEFT_TO_RIGHT in page.text("#conllu"))
    assert all(word in page.text("#best pre.drawn") for word in LEFT_TO_RIGHT.split())
    assert page.count("#marginals figure svg") == 4
    places = page.places("#best svg .word")
    assert places == sorted(places)
    page.changed("#chart", lambda: page.move("sigma", 0.3))
    few = page.structures()
    page.changed("#chart", lambda: page.move("sigma", 0.98))
    assert page.structures() > few
    page.driver.save_screenshot(str(tmp_path / "left-to-right.png"))


def test_weights_change_pool_and_tree(page: Page) -> None:
    pool, tree = page.markup("#pool"), page.markup("#best")
    page.changed("#best", lambda: page.move("weight-0", 0.05))
    assert page.markup("#pool") != pool
    page.changed("#best", lambda: page.move("weight-0", 1))
    page.until(lambda: (page.markup("#pool"), page.markup("#best")) == (pool, tree))


def test_source_can_be_deselected(page: Page) -> None:
    marginals, pool = page.markup("#marginals"), page.markup("#pool")
    second = page.driver.find_elements("css selector", "#sources input")[1]
    page.changed("#pool", second.click)
    page.until(lambda: page.count("#marginals figure svg") == 3)
    page.changed("#pool", second.click)
    page.until(lambda: (page.markup("#marginals"), page.markup("#pool")) == (marginals, pool))


def test_right_to_left_sentence(page: Page, tmp_path: Path) -> None:
    page.changed("#best", lambda: page.read(RIGHT_TO_LEFT))
    page.until(lambda: RIGHT_TO_LEFT in page.text("#conllu"))
    for part in ("#best", "#chart"):
        places = page.places(f"{part} svg .word")
        assert places == sorted(places, reverse=True)
    assert "◄" in page.text("#best pre.drawn")
    page.driver.save_screenshot(str(tmp_path / "right-to-left.png"))


def test_tags(page: Page) -> None:
    tasks = page.driver.find_elements("css selector", "#task input")
    page.changed("#chart", tasks[1].click)
    assert "tag sequence" in page.text("#chart")
    many = page.structures()
    page.changed("#chart", lambda: page.move("sigma", 0.5))
    assert page.structures() < many
    assert "/" in page.text("#best pre.drawn")


def test_uploaded_file_with_gold(page: Page, tmp_path: Path) -> None:
    sentence = example_sentences()[4]
    file = tmp_path / "some.conllu"
    file.write_text(sentence.raw, encoding="utf-8")
    page.changed("#chart", lambda: page.find("input[type=file]").send_keys(str(file)))
    page.until(lambda: sentence.sent_id in page.text("#conllu"))
    page.until(lambda: page.text("#chart").count("★") >= len(sentence.words))


def test_errors_are_shown(page: Page) -> None:
    page.read(" ")
    page.until(lambda: "type at least one word" in page.text("body"))


def test_files_texts_and_queue_are_limited(address: str) -> None:
    config = httpx.get(f"{address}config").json()
    assert config["max_file_size"] == MAX_UPLOAD
    assert [each["props"]["max_length"] for each in config["components"] if each["type"] == "textbox"] == [
        MAX_TEXT
    ]
    file = {"files": ("large.txt", b"a" * (MAX_UPLOAD + 1))}
    assert httpx.post(f"{address}gradio_api/upload", files=file).status_code == 413


def test_page_loads_nothing_from_elsewhere(page: Page, address: str) -> None:
    script = "return performance.getEntriesByType('resource').map(entry => entry.name)"
    loaded = page.driver.execute_script(script)
    assert loaded
    assert [name for name in loaded if not name.startswith((address, "data:", "blob:"))] == []
    severe = [entry["message"] for entry in page.driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert severe == []
