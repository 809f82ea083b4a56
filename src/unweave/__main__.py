"""`python -m unweave` is the command `unweave`."""

from .cli import main

main()
