"""Sphinx: the pages that make_pages.py has written, as HTML that needs no server."""
project = "sptx-w2v"
extensions = ["myst_parser"]
exclude_patterns = ["run"]
html_theme = "furo"
html_title = "sptx-w2v"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]
