"""Real data: from a publisher's file to a clean problem set of the schema that rollout and evaluation read (docs/data.md).

Three stages, each a rule: fetch (the only one with a network), benchmark (checked, otherwise untouched), corpus (cleaned and freed of
everything that a benchmark holds). The room is named corpora because `datasets` is another package.
"""
