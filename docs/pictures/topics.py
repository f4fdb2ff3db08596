"""The map of topics on docs/topics.md: messages to a bank, BANKING77's test part (CC BY 4.0).

python docs/pictures/topics.py    # wants chromium and the folder domain/banking of LIKEWISE_DATA
"""

import os
import random
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import likewise

DATA = Path(os.environ.get("LIKEWISE_DATA") or Path(__file__).parents[3] / "shared" / "data")
HERE = Path(__file__).parent


def main() -> None:
    lines = (DATA / "domain/banking/classes-test.tsv").read_text(encoding="utf-8").splitlines()
    random.Random(1).shuffle(lines)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as player:
        found = likewise.topics([line.split("\t", 1)[1] for line in lines[:2000]], out=Path(folder) / "topics")
        browser = player.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 1100, "height": 900}, color_scheme=scheme)
            page.goto((found.path / "map.html").as_uri())
            page.locator(".map").screenshot(path=HERE / f"topics-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
