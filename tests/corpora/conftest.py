"""Small raw data sets with known dirt, and settings for them."""

from __future__ import annotations

import json

import pytest

from ibtpo.config.corpora import Corpora

SOURCE = {"role": "training", "kind": "maths", "title": "Some set", "hub": "someone/some", "files": ["some.jsonl"], "licence": "none"}


@pytest.fixture
def settings(tmp_path):
    """Writes rows per data set and the settings for them: settings({"a": rows, "b": rows}, cleaning={...}, b={"role": "benchmark"})."""

    def write(data: dict[str, list | str], cleaning: dict | None = None, **changes: dict) -> Corpora:
        sources = {}
        for name, rows in data.items():
            sources[name] = {**SOURCE, "title": name, **changes.get(name, {})}
            path = tmp_path / "raw" / name / "some.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        content = {"data_root": str(tmp_path / "raw"), "cleaning": cleaning or {}, "sources": sources}
        return Corpora.model_validate_json(json.dumps(content), strict=True)

    return write
