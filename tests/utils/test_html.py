"""HTML for notebooks: texts are escaped, numbers are formatted, colors suit any page."""

import base64
import io
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup
from PIL import Image

from unweave.utils import html

HOSTILE = '<script>alert("1")</script>'
ESCAPED = "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;"


@dataclass
class Settings:
    """Settings with a default, with another value, and with a hostile one."""

    steps: int = 100
    label: str = ""


@pytest.mark.parametrize(
    "made",
    [
        html.page(HOSTILE, ""),
        html.page("", HOSTILE),
        html.page("", "", HOSTILE),
        html.text(HOSTILE),
        html.items([HOSTILE]),
        html.details(HOSTILE, ""),
        html.details("", HOSTILE),
        html.code(HOSTILE),
        html.table([HOSTILE], []),
        html.table(["a"], [[HOSTILE]]),
        html.table(["a"], [[html.Cell(HOSTILE, is_number=True, is_best=True, tint=1)]]),
        html.image(np.zeros((1, 1), np.uint8), HOSTILE),
        html.join([HOSTILE]),
        html.settings(Settings(label=HOSTILE)),
    ],
)
def test_texts_are_escaped(made):
    assert ESCAPED in made
    assert "<script" not in made


def test_finished_html_is_not_escaped_again():
    part = html.table(["a", "b"], [[html.code("x < 1"), html.Cell(Markup("<b>2</b>"))]])
    page = html.page("", "", part, html.details("more", part))
    assert page.count("<code>x &lt; 1</code>") == page.count("<b>2</b>") == 2


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA])
def test_missing_numbers_are_a_dash(missing):
    assert html.format_score(missing) == html.format_value(missing) == html.MISSING


def test_numbers_are_short():
    assert html.format_score(np.float32(0.12345)) == "0.123"
    assert [html.format_value(v) for v in (np.float64(0.000123456), 12, np.int64(12345), True, "a")] == [
        "0.0001235", "12", "12345", "True", "a",
    ]  # fmt: skip


def test_numbers_are_aligned_and_the_best_is_marked():
    table = html.table(["name", "score"], [["a", html.Cell("0.5", is_number=True, is_best=True)], ["b", 1]])
    assert '<th>name</th><th class="uw-number">score</th>' in table
    assert '<td>a</td><td class="uw-number uw-best">0.5</td>' in table
    assert '<td class="uw-number">1</td>' in table
    assert '<th class="uw-number">steps</th>' in html.table(["steps"], [[1], [None]])
    mixed = html.table(["setting"], [[1], ["auto"], [True]])
    assert "<th>setting</th>" in mixed, "only a column of numbers has its name at the right"


@pytest.mark.parametrize(("tint", "opacity"), [(0.5, "0.25"), (1.0, "0.50"), (7.0, "0.50")])
def test_tints_are_transparent(tint, opacity):
    assert f"rgba(47, 129, 247, {opacity})" in html.table(["a"], [[html.Cell("1", tint=tint)]])


def test_no_tint_without_strength():
    assert "style" not in html.table(["a"], [[html.Cell("1", tint=0.0)], [html.Cell("1", tint=-1.0)]])


def test_colors_are_those_of_the_page():
    """Fixed colors would be unreadable on pages that are dark, or light."""
    values = re.findall(r"(?:^|[\s{;])(?:color|background|border-bottom-color): ([^;}]+)", html.STYLE)
    assert len(values) > 5
    assert all(value in ("inherit", "transparent") or value.startswith("rgba(") for value in values), values


def test_an_image_is_inside_the_page():
    pixels = np.random.default_rng(0).integers(256, size=(3, 5, 4), dtype=np.uint8)
    encoded = re.search(r'src="data:image/png;base64,([^"]+)" width="5"', html.image(pixels, ""))
    assert encoded is not None
    assert np.array_equal(np.array(Image.open(io.BytesIO(base64.b64decode(encoded[1])))), pixels)


def test_changed_settings_are_bold_and_long_ones_cut():
    table = html.settings(Settings(label="x" * 500))
    assert "<td>steps</td><td>100</td>" in table
    assert '<td class="uw-strong">label</td>' in table
    assert "x" * 70 in table
    assert "x" * 100 not in table
