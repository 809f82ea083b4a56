"""Configuration of the docs site. `make docs` builds it; nothing is fetched from a network."""

import os
import sys
import warnings
from pathlib import Path

import matplotlib as mpl

import unweave

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
mpl.use("Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # examples run two at a time
warnings.filterwarnings("ignore", message=".*non-interactive.*")

project = "Unweave"
author = "the Unweave developers"
copyright = "2026, the Unweave developers"  # noqa: A001
release = version = unweave.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.githubpages",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
    "reference",
]
exclude_patterns = [
    "_build",
    "_ext",
    "**/GALLERY_HEADER.rst",
    "sg_execution_times.rst",
    "gallery/sg_execution_times.rst",
]
default_role = "code"  # docstrings write `code` as Markdown does
nitpicky = False

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_member_order = "bysource"
napoleon_use_rtype = False
napoleon_use_ivar = True
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(^|/)(my_|__init__)",
    "subsection_order": ["../examples/methods", "../examples/data", "../examples/questions"],
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("unweave",),
    "backreferences_dir": "api/generated/backreferences",
    "inspect_global_variables": False,
    "prefer_full_module": [r"unweave\."],
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "min_reported_time": 30,
    "download_all_examples": True,
    "plot_gallery": "True",
    "parallel": 2,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib",),
    "show_memory": False,
    "show_signature": False,
    "thumbnail_size": (400, 280),
}

html_theme = "pydata_sphinx_theme"
html_title = "Unweave"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"image_light": "_logo/logo-light.svg", "image_dark": "_logo/logo-dark.svg", "alt_text": "Unweave"},
    "show_toc_level": 2,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_search_scorer = str(HERE / "_static" / "scorer.js")
single_pages = ("index", "install", "quickstart", "benchmarks", "faq", "architecture", "contributing", "changelog")
html_sidebars: dict[str, list[str]] = {name: [] for name in single_pages}  # nothing to navigate within them
suppress_warnings = ["config.cache"]  # functions in sphinx_gallery_conf
