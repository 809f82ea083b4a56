"""One file per metric: `unweave.metrics.mcc(factors, codes)`, truth first, (n, k) and (n, d), numpy or torch."""

from typing import TYPE_CHECKING, Any

from ..discovery import contents

globals().update(contents(__name__, lambda o: hasattr(o, "facts")))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
