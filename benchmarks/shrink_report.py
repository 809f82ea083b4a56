"""Shrink a report for the site: `python benchmarks/shrink_report.py report.html docs/_static/reports/NAME.html`.

Pixels inside the figures of a report are PNGs of full color. Here they get palettes of 256 colors, which halves the
page. Text and lines are not changed.
"""

import base64
import io
import re
import sys
from pathlib import Path

from PIL import Image

COLORS = 256
SVG = re.compile(r"(?<=data:image/svg\+xml;base64,)[A-Za-z0-9+/=]+")
PNG = re.compile(r"(?<=data:image/png;base64,)[A-Za-z0-9+/=\s]+")


def shrink_picture(match: re.Match[str]) -> str:
    """Return a PNG with a palette as base64, or the original if that is smaller."""
    original = base64.b64decode(match[0])
    palette = Image.open(io.BytesIO(original)).convert("RGBA").quantize(COLORS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    palette.save(buffer, "PNG", optimize=True)
    return base64.b64encode(min(buffer.getvalue(), original, key=len)).decode()


def shrink_figure(match: re.Match[str]) -> str:
    """Return an SVG with smaller pictures inside as base64."""
    text = PNG.sub(shrink_picture, base64.b64decode(match[0]).decode())
    return base64.b64encode(text.encode()).decode()


def main() -> None:
    """Read a page, write a smaller one, and print both sizes."""
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    page = source.read_text(encoding="utf-8")
    smaller = SVG.sub(shrink_figure, page)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(smaller, encoding="utf-8")
    print(f"{len(page) / 1e6:.1f} MB -> {len(smaller) / 1e6:.1f} MB: {target}")


if __name__ == "__main__":
    main()
