"""The command `unweave`."""
