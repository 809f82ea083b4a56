"""The command `unweave cache`: show, remove and ship what was compiled for the GPU or CPU of this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from unweave.cli.terminal import parse_options, print_json, print_text
from unweave.utils.errors import InputError, unknown

USAGE = """usage: unweave cache [info | pack FILE | unpack FILE | clear] [--json]

  info         show the folder of compiled training steps, its size, and the versions that it is valid for
  pack FILE    write it to FILE, to be used on another machine
  unpack FILE  add what FILE holds to the folder of this machine
  clear        remove the folder; steps are compiled again when they are needed

Compiling a step takes a minute for large models. A machine with the same GPU and the same versions of torch, triton
and Python need not do it again:

  unweave cache pack steps.tar.gz      # where the study was tried out
  unweave cache unpack steps.tar.gz    # on a fresh machine

What FILE holds is executed when a model is trained. Unpack only files that you packed yourself or trust like a
program. Files of other versions, and files that other users may change, are refused."""


@dataclass(kw_only=True)
class Cache:
    """Show, remove and ship compiled training steps."""

    json: bool = False
    """Print as JSON."""


def cache(args: list[str]) -> None:
    """Show, remove and ship compiled training steps."""
    if {"-h", "--help"} & set(args):
        return print_text(USAGE)
    words: list[str] = []
    while args and not args[0].startswith("-") and len(words) < 2:
        words.append(args.pop(0))
    options = parse_options(Cache, prog="unweave cache", args=args)
    action, file = [*words, "info"][0], words[1] if len(words) > 1 else ""
    if action not in ACTIONS:
        raise unknown("action of `unweave cache`", action, ACTIONS)
    if (action in ("pack", "unpack")) != bool(file):
        raise InputError(f"unweave cache {action}: expected {'a file' if not file else 'no file'}; see --help")
    result = ACTIONS[action](Path(file).expanduser())
    if options.json:
        return print_json(result)
    for name, value in result.items():
        print_text(f"{name:8}{value}")
    return None


def show_cache(_: Path) -> dict[str, object]:
    """Return what the cache holds."""
    from unweave.training.compile_cache import describe_cache

    return describe_cache()


def pack(file: Path) -> dict[str, object]:
    """Write the cache to a file."""
    from unweave.training.compile_cache import pack_cache

    return {"files": pack_cache(file), "file": str(file), "MB": round(file.stat().st_size / 1e6, 1)}


def unpack(file: Path) -> dict[str, object]:
    """Add a file to the cache."""
    from unweave.training.compile_cache import compile_folder, unpack_cache

    return {"files": unpack_cache(file), "folder": str(compile_folder())}


def clear(_: Path) -> dict[str, object]:
    """Remove the cache."""
    from unweave.training.compile_cache import clear_cache, compile_folder

    clear_cache()
    return {"removed": str(compile_folder())}


ACTIONS: dict[str, Callable[[Path], dict[str, object]]] = {
    "info": show_cache, "pack": pack, "unpack": unpack, "clear": clear,
}  # fmt: skip
