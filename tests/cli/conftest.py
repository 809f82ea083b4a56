"""Fixtures of the commands' tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unweave.cli.main import main


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command in this process and returns exit code, stdout and stderr."""

    def call(*args: Any) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([str(arg) for arg in args])
        output = capsys.readouterr()
        return stopped.value.code or 0, output.out, output.err  # type: ignore[return-value]

    return call
