"""One file per dataset family. A file here is a dataset everywhere: command line, tests, studies, report."""

from typing import TYPE_CHECKING, Any

from ..dataset import Dataset
from ..discovery import contents

globals().update(contents(__name__, lambda o: isinstance(o, type) and issubclass(o, Dataset)))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
