"""The hooks of mkdocs that make pages from what is outside the folder docs/: README, notebooks, the command line,
formulas."""

from __future__ import annotations

import base64
import html
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Files of the repository that are pages of the site, by their path there."""

_LINK = re.compile(r'(!?\[[^\]]*\]\()([^)\s#]+)((?:#[^)\s]*)?\))|((?:src|srcset|href)=")([^"#]+)(")')


def on_config(config: Any) -> Any:
    """Put the pages of the command line into the navigation."""
    reference = next(item["Reference"] for item in config.nav if "Reference" in item)
    verbs = [{"likewise": _page_of("")}, *({verb: _page_of(verb)} for verb in _root().list_commands(None))]
    next(item for item in reference if "Command line" in item)["Command line"] = verbs
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        text = relinked(text, source, page) if source.endswith(".md") else text
        files.append(File.generated(config, page, content=text))
    for notebook in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        page = f"notebooks/{notebook.stem}.md"
        files.remove(files.src_uris[f"notebooks/{notebook.name}"])
        pictures: dict[str, bytes] = {}
        files.append(File.generated(config, page, content=notebook_page(notebook, pictures)))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    root = _root()
    files.append(File.generated(config, _page_of(""), content=f"# likewise\n\n```\n{_help(root)}\n```\n"))
    for verb in root.list_commands(None):
        text = "\n".join(_command_page(root.get_command(None, verb), f"likewise {verb}"))
        files.append(File.generated(config, _page_of(verb), content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to files of the repository into links to their pages."""
    uri = page.file.src_uri
    return markdown if uri in PAGES.values() else relinked(markdown, f"docs/{uri}", uri)


def on_page_content(content: str, **_: Any) -> str:
    """Turn formulas into MathML, which needs no script."""

    def formula(match: re.Match[str]) -> str:
        display = "block" if match[1] == "div" else "inline"
        return f'<{match[1]} class="math">{convert(html.unescape(match[2]).strip(), display=display)}</{match[1]}>'

    return re.sub(r'<(div|span) class="arithmatex">\\[\[(](.*?)\\[\])]</\1>', formula, content, flags=re.DOTALL)


def relinked(text: str, source: str, page: str) -> str:
    """Return a text of the repository with its links as they must be on a page; other files become plain paths."""

    def replace(match: re.Match[str]) -> str:
        before, target, after = (match[1], match[2], match[3]) if match[1] else (match[4], match[5], match[6])
        if ":" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        uri = PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if uri and uri.endswith(".ipynb"):
            uri = uri.removesuffix("ipynb") + "md"
        if uri is None or not uri.endswith((".md", ".png", ".html", ".svg")):
            return f"{match[1][1:-2]} (`{path}`)" if match[1] and (ROOT / path).exists() else match[0]
        if not match[1] and uri.endswith(".md"):
            uri = uri.removesuffix(".md") + ".html"
        return before + posixpath.relpath(uri, posixpath.dirname(page) or ".") + after

    # What stands in a block of code is no link.
    parts = re.split(r"(^```.*?^```|^ {4}.*?$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if i % 2 else _LINK.sub(replace, part) for i, part in enumerate(parts))


def notebook_page(path: Path, pictures: dict[str, bytes]) -> str:
    """Return a notebook as Markdown; its pictures are put into `pictures` by name."""
    lines: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```python", source, "```", ""]
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{path.stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode("".join(data["image/png"]))
                lines += [f"![]({name})", ""]
            elif text := "".join(output.get("text", data.get("text/plain", []))):
                lines += ["```text", text.rstrip(), "```", ""]
    return "\n".join(lines)


def _root() -> Any:
    import typer

    from likewise.cli import build_app

    return typer.main.get_command(build_app())


def _page_of(verb: str) -> str:
    return f"reference/command-line/{f'likewise-{verb}' if verb else 'likewise'}.md"


def _context(command: Any, name: str) -> Any:
    return command.context_class(command, info_name=name, max_content_width=100, terminal_width=100)


def _help(command: Any) -> str:
    return command.get_help(_context(command, "likewise"))


def _command_page(command: Any, name: str, level: int = 1) -> Iterator[str]:
    """Return the lines of a command's page; the commands of a group are its sections."""
    context = _context(command, name)
    usage = context.get_usage().removeprefix("Usage: ")
    yield from (f"{'#' * level} {name}", "", _escaped(command.help or ""), "", f"```\n{usage}\n```", "")
    if names := getattr(command, "list_commands", lambda _: [])(context):
        for one in names:
            yield from _command_page(command.get_command(context, one), f"{name} {one}", level + 1)
        return
    yield from ("| option | |", "| --- | --- |")
    for parameter in command.get_params(context):
        if record := parameter.get_help_record(context):
            yield f"| `{record[0].replace('|', chr(0x2223))}` | {_escaped(record[1])} |"
    yield ""


def _escaped(text: str) -> str:
    return re.sub(r"([*_<|\[\]`$])", r"\\\1", text)
