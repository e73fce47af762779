"""The configuration of the site that scripts/site makes with Sphinx: pages in Markdown, docstrings, and Doxygen's XML."""

import re
import sys
from unittest.mock import MagicMock

project = "gpuconv"
copyright = "the authors of gpuconv"
root_doc = "README"
extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "gpuconv"
html_static_path = ["docs/site/static"]
html_css_files = ["site.css"]
html_js_files = ["theme.js"]
html_extra_path = ["extra"]
html_copy_source = False
# The docstrings are read without the compiled module and without PyTorch.
autodoc_mock_imports = ["gpuconv._core"]
torch = MagicMock()
torch.nn.Module = torch.autograd.Function = object
sys.modules.update({"torch": torch, "torch.autograd": torch.autograd})
autodoc_typehints = "none"
autodoc_member_order = "bysource"
smartquotes = False
default_role = "code"
highlight_language = "none"
breathe_projects = {"gpuconv": "xml"}
breathe_default_project = "gpuconv"
breathe_domain_by_extension = {"h": "c"}
c_id_attributes = ["GPUCONV_API"]

PARAMETER = re.compile(r"((?:`?\*{0,2}\w+`?)(?:(?:, | and )`?\w+`?)*): (.*)")


def escaped(text):
    """Returns text with a backslash before each *, _ and | outside backticks, so that Sphinx prints them."""
    return re.sub(r"(`[^`]*`)|([*_|])", lambda match: match[1] or "\\" + match[2], text)


def as_list(app, what, name, obj, options, lines):
    """Makes a list of the lines "name: text" of a docstring, whose continuation lines are indented already, and code of a block."""
    made, inside, code = [], False, False
    for number, line in enumerate(lines):
        found = PARAMETER.match(line) if number else None
        indented = line.startswith(" ")
        if found and not inside or inside and line and not found and not indented:
            made.append("")
        if indented and not inside and not made[-1]:
            made += [".. code-block:: python", ""]
            code = True
        code = code and (indented or not line)
        inside = bool(found) or inside and (indented or not line)
        if found:
            made += [f"``{found[1].replace('`', '')}``", f"    {escaped(found[2])}"]
        else:
            made.append(line if code else escaped(line))
    lines[:] = made


def setup(app):
    app.connect("autodoc-process-docstring", as_list)
