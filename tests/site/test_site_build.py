"""The site as files: whole, self-contained, the same for the same artifacts, and harmless whatever the titles say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from artifacts import HOSTILE, IMAGE, SCRIPT, make_site, small, working_in, write_artifacts

from ibtpo.config import Paths
from ibtpo.site import main
from ibtpo.site.build import PAGES

LIMIT = 15 * 2**20  # bytes
FORMATS = {"tables": ("csv", "md", "tex"), "figures": ("svg", "pdf", "png")}


class Reader(HTMLParser):
    """What a browser would see: links, ids, the tags, and the text outside of scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.links, self.ids, self.tags, self.text, self._script = [], [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.links += [value for name, value in attrs if name in ("href", "src")]
        self.ids += [value for name, value in attrs if name == "id"]
        self._script = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._script = False

    def handle_data(self, data):
        if not self._script:
            self.text.append(data)


def read(site: Path) -> dict[str, Reader]:
    return {page.name: Reader((site / f"{page.name}.html").read_text(encoding="utf-8")) for page in PAGES}


def test_every_page_and_every_download_is_there(site):
    config = small()
    paths = Paths(config)
    assert {path.name for path in site.glob("*.html")} == {f"{page.name}.html" for page in PAGES}
    for kind, names in (("tables", paths.tables), ("figures", paths.figures)):
        found = {path.name for path in (site / "assets" / kind).iterdir()}
        assert found == {f"{name}.{extension}" for name in names for extension in FORMATS[kind]}
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < LIMIT


def test_every_link_leads_to_a_file_and_a_place_in_it(site):
    """Nothing comes from a network; links out of the site lead to the sources of the repository, which are not beside this one."""
    pages = read(site)
    for name, page in pages.items():
        for link in page.links:
            assert not re.match(r"(https?:)?//|javascript:", link), link
            target, _, place = link.partition("#")
            if target.startswith("../") or link.startswith("data:"):
                continue
            assert not target or (site / target).is_file(), (name, link)
            assert not place or "=" in place or place in pages[Path(target).stem if target else name].ids, (name, link)


def test_ids_are_unique(site):
    for name, page in read(site).items():
        assert len(set(page.ids)) == len(page.ids), name


def test_text_of_artifacts_is_text(site):
    """Hostile titles make no tag, end no script and are no template; what is shown, and what scripts get, is the title itself."""
    for name, page in read(site).items():
        raw = (site / f"{name}.html").read_text(encoding="utf-8")
        assert SCRIPT not in raw and IMAGE not in raw and "49" not in re.findall(r"\{\{[^}]*\}\}", raw)
        assert ("img", {"src": "x", "onerror": "window.hacked = 1"}) not in page.tags
    shown = "".join(read(site)["tables"].text)
    assert all(text in shown for text in HOSTILE)
    runs = (site / "runs.html").read_text(encoding="utf-8")
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', runs, re.DOTALL)[1]
    titles = [method["title"] for method in json.loads(block)["methods"]]
    assert titles == [small().methods[name].title for name in ("grpo", "ibtpo")]


def test_equal_artifacts_give_equal_bytes(site, tmp_path):
    def content(folder):
        return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert content(make_site(small(), tmp_path / "again")) == content(site)


def test_a_missing_artifact_or_table_is_named_and_nothing_is_written(tmp_path):
    config = small()
    paths = Paths(config)
    with working_in(tmp_path):
        with pytest.raises(FileNotFoundError, match=r"scores-base-\w+\.parquet; run the rule"):
            main(config, paths.site)
        write_artifacts(config, tmp_path)
        with pytest.raises(FileNotFoundError, match=r"table1\.csv; run `snakemake table1`"):
            main(config, paths.site)
        assert not paths.site.exists()


def test_other_presets_have_a_report_of_their_own(smoke):
    assert Paths(small()).site == Path("results/report")
    assert Paths(smoke).site == Path("results/smoke/report")


def test_no_page_needs_torch():
    code = "import sys, ibtpo.site.build; assert not {'torch', 'transformers', 'trl', 'vllm'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
