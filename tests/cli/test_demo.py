"""The command `unweave demo`."""

import json


def test_the_demo_recovers_the_position_and_writes_its_report(run, tmp_path):
    code, out, _ = run("demo", "--points", 1000, "--json")
    assert code == 0
    scores = {record["method"]: record["mcc"] for record in json.loads(out)}
    assert scores["hessian-ica"] > 0.99 > scores["linear-ica"] > scores["pca"]
    assert (tmp_path / "report.html").stat().st_size > 100_000
