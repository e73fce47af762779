"""Checks the links of a folder of HTML pages: each leads to a file of the folder, and to an anchor that its page has.

Usage: check_links.py FOLDER. Prints each broken link; the exit status is 1 if there is one, and 2 if there are no links.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src", "poster") and value:
                self.links.append(value)
            elif name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)


folder = Path(sys.argv[1]).resolve()
pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
count = broken = 0
for path, page in pages.items():
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        count += 1
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        inside = target == folder or folder in target.parents
        anchor = unquote(parts.fragment)
        if not inside or not target.is_file() or (target in pages and anchor not in pages[target].anchors):
            print(f"{path.relative_to(folder)}: the link {link} leads nowhere", file=sys.stderr)
            broken += 1
print(f"{count} links in {len(pages)} pages")
sys.exit(2 if count == 0 else broken > 0)
