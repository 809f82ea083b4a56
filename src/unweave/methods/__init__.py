"""One file per method or tight family. A file here is a method everywhere: command line, tests, studies, report."""

from typing import TYPE_CHECKING, Any

from ..discovery import contents
from ..method import Method

globals().update(contents(__name__, lambda o: isinstance(o, type) and issubclass(o, Method)))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
