"""`python -m unweave` is the command `unweave`."""

from unweave.cli.main import main

main()
