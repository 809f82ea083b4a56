"""The command `unweave list`."""

import json


def test_tables_show_names_summaries_and_papers(run):
    code, out, _ = run("list", "methods")
    assert code == 0 and "hessian-ica" in out and "mine.py:MyMethod" in out and "squares-xy" not in out
    entries = json.loads(run("list", "datasets", "--json")[1])["datasets"]
    assert all(entry["name"] and entry["summary"] for entry in entries)
