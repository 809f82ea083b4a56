"""`Neural`: what a subclass may define."""

import pytest

from unweave import InputError
from unweave.methods.neural import RENAMED_HOOKS, Neural


@pytest.mark.parametrize(("former", "current"), RENAMED_HOOKS.items())
def test_a_hook_by_its_former_name_is_refused_and_the_new_name_given(former, current):
    with pytest.raises(InputError, match=f"Mine.{former} is no longer called: rename it to `{current}`"):
        type("Mine", (Neural,), {former: lambda self: None})


def test_every_new_hook_name_is_a_hook():
    assert all(callable(getattr(Neural, current)) for current in RENAMED_HOOKS.values())
