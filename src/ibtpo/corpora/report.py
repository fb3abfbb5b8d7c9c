"""The report of a builder, to read."""

from __future__ import annotations

from typing import Any


def markdown(report: dict[str, Any]) -> str:
    """Markdown of a report: where the data is from, a table of the steps, the contamination table, and examples of every step."""
    parts = [
        f"# {report['title']}",
        f"{report['written']:,} problems. Publisher: {report['hub'] or 'none'}, {report['revision']}. Licence: {report['licence']}.",
        _table(("file", "sha256"), report["files"].items()),
        f"{report['rows']:,} rows read; {report['repeated']:,} repeat an earlier problem, {report['other_level']:,} have another level.",
        "## Steps",
        _table(
            ("step", "meaning", "before", "changed", "removed", "after"),
            [(s["name"], s["meaning"], s["before"], s["changed"], s["removed"], s["before"] - s["removed"]) for s in report["steps"]],
        ),
    ]
    if report["contamination"] is not None:
        columns = ("benchmark", "problems", "occurring", "text", "ngram", "any_ngram")
        parts += [
            "## Contamination",
            "Of each benchmark: its problems, how many of them occur in the training data, training problems removed for equal text and "
            "for n-gram overlap, and (not all removed) those with any n-gram in common, turns of phrase included.",
            _table(columns, [[row[column] for column in columns] for row in report["contamination"]]),
        ]
    parts.append("## Examples")
    for step in report["steps"]:
        if step["examples"]:
            parts += [f"### {step['name']}", "\n".join(_example(**example) for example in step["examples"])]
    return "\n\n".join(parts) + "\n"


def _table(head, rows) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else _cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: Any) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def _example(uid: str, why: str, text: str) -> str:
    return f"- `{uid}` {_code(why)}\n  {_code(text)}"


def _code(text: str) -> str:
    """Text as it is: a problem may hold Markdown and dollars."""
    return "`` " + " ".join(text.replace("``", "` `").split()) + " ``"
