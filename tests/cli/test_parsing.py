"""Options from dataclasses, and errors in one line."""

from dataclasses import dataclass

import pytest

from unweave import InputError
from unweave.cli.parsing import docstring_summary, parse_options, run_action


@dataclass
class Options:
    """Two numbers."""

    count: int = 1
    """Number of runs."""
    rate: float = 0.5


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--count", "two"], "Error parsing --count: 'two' is not an integer. Expected: --count INT"),
        (["--rate", "fast"], "Error parsing --rate: 'fast' is not a number. Expected: --rate FLOAT"),
        (["--cuont", "2"], "Unrecognized options: --cuont, 2. Perhaps you meant: --count INT Number of runs"),
        (["--count"], "Missing value for argument '--count'"),
    ],
)
def test_wrong_options_give_one_line(args, message):
    with pytest.raises(InputError) as error:
        parse_options(Options, prog="unweave test", args=args)
    text = str(error.value)
    assert text.startswith(message) and "\n" not in text and "For all options, " in text
    assert "─" not in text and "│" not in text


def test_actions_are_listed_and_dispatched(capsys):
    calls = []

    def start(args):
        """Start it."""
        calls.append(args)

    run_action("unweave test", "usage", {"start": start}, ["start", "-x"])
    assert calls == [["-x"]] and docstring_summary(start) == "Start it."
    run_action("unweave test", "usage", {"start": start}, [])
    assert "start   Start it." in capsys.readouterr().out
    with pytest.raises(InputError, match="did you mean 'start'"):
        run_action("unweave test", "usage", {"start": start}, ["strat"])
