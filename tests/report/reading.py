"""Reads tables back: what the tests of tables share."""

import csv
import io
import re

from ibtpo.report.render import tidy_csv


def cells(table):
    """Rows of the tidy CSV by (row, column), of the first grid that has it."""
    found = {}
    for row in csv.DictReader(io.StringIO(tidy_csv(table))):
        found.setdefault((row["row"], row["column"]), row)
    return found


def markdown_rows(text):
    """Cells of the lines of all Markdown tables, split at bars that are not escaped."""
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines() if line.startswith("|")]
