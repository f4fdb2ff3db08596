"""What the package registry shows: README.md without links that lead nowhere outside of a checkout."""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"<picture>.*?</picture>\n*", re.DOTALL)
_MARK = re.compile(r"^<!-- .* -->\n", re.MULTILINE)
_RELATIVE = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#)([^()\s]+)\)")


def described(readme: str, home: str = "") -> str:
    """Return a README with absolute links, or with the text alone of those that are relative if there is no home.

    Args:
        readme: Markdown.
        home: Address of the repository, such as https://github.com/OWNER/NAME.
    """
    place = rf"[\1]({home}/blob/main/\2)" if home else r"\1"
    return _RELATIVE.sub(place, _MARK.sub("", _PICTURE.sub("", readme)))


class ReadmeHook(MetadataHookInterface):
    """Sets the description, and the addresses if LIKEWISE_HOME names the repository, as the workflow does."""

    def update(self, metadata: dict) -> None:
        """Add the fields that are dynamic."""
        home = os.environ.get("LIKEWISE_HOME", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": described(text, home)}
        if home:
            metadata["urls"] = {
                "Repository": home,
                "Documentation": f"{home}/tree/main/docs",
                "Changelog": f"{home}/blob/main/CHANGELOG.md",
                "Issues": f"{home}/issues",
            }
