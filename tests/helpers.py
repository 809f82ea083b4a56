"""Small methods that several test modules train."""

from typing import Any

from unweave import catalog
from unweave.methods.neural import Neural

METHODS = catalog.methods()
NETWORKS = [name for name, cls in METHODS.items() if issubclass(cls, Neural)]
SMALL = {
    "latent_dim": 2, "steps": 30, "batch_size": 16, "layers": (8,), "widths": (4, 4), "hidden": (8,), "critic": (8,),
}  # fmt: skip


def small_method(name: str, **settings: Any) -> Any:
    """Return the method of this name with two codes, few steps and a small network."""
    fields = METHODS[name].__dataclass_fields__
    return METHODS[name](**{k: v for k, v in SMALL.items() if k in fields} | settings)
