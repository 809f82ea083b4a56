"""Check the local links, images and anchors of the built site: `python docs/check_links.py docs/_build/html`."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links out of a page, and the anchors that it offers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.links += [values[name] for name in ("href", "src") if name in values]
        self.anchors |= {values[name] for name in ("id", "name") if name in values}


def broken_links(folder: Path) -> list[str]:
    """Return a line for every local link of a site that leads nowhere."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(folder.resolve().rglob("*.html"))}
    pages = {path: Page(text) for path, text in texts.items() if "<html" in text}  # others are templates
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:  # another site, mail or embedded data
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.exists():
                broken.append(f"{path.relative_to(folder.resolve())}: {link}: no such file")
            elif target in pages and anchor not in pages[target].anchors:
                broken.append(f"{path.relative_to(folder.resolve())}: {link}: no such anchor")
    return broken


def main() -> None:
    """Print broken links, and exit with 1 if there are any."""
    folder = Path(sys.argv[1])
    if not (folder / "index.html").is_file():
        sys.exit(f"{folder} has no index.html: build the site first (make docs)")
    broken = broken_links(folder)
    sys.stdout.write("\n".join([*broken, f"{len(broken)} broken links in {folder}\n"]))
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
