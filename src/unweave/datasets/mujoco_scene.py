"""Render scenes with MuJoCo (the extra `render`)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from unweave.data.downloads import MissingData

Color = Sequence[float]

SIZE = 64  # width and height of an image in pixels
HEADLESS_HINT = "on a machine without a screen, set the environment variable MUJOCO_GL=egl or MUJOCO_GL=osmesa"


def import_mujoco() -> Any:
    """Return the module `mujoco`, or raise an error that explains how to install it."""
    try:
        return importlib.import_module("mujoco")
    except ModuleNotFoundError as error:
        raise MissingData(
            f"rendering needs MuJoCo ({error}); install the extra: pip install 'unweave[render]'; {HEADLESS_HINT}"
        ) from error
    except Exception as error:  # a missing graphics library raises errors of many types
        raise MissingData(f"MuJoCo cannot be imported ({type(error).__name__}: {error}); {HEADLESS_HINT}") from error


@final
class Scene:
    """A compiled MuJoCo model with a camera and a renderer. A context manager, since it holds graphics memory."""

    def __init__(self, xml: str, look_at: tuple[float, float, float]) -> None:
        self.library = import_mujoco()
        self.model = self.library.MjModel.from_xml_string(xml)
        self.state = self.library.MjData(self.model)
        self.camera = self.library.MjvCamera()
        self.camera.lookat[:] = look_at
        try:
            self.renderer = self.library.Renderer(self.model, SIZE, SIZE)
        except Exception as error:  # each graphics library raises its own; all mean that nothing can be drawn here
            raise MissingData(
                f"MuJoCo is installed but cannot draw ({type(error).__name__}: {error}); {HEADLESS_HINT}"
            ) from error

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.renderer.close()

    def paint_material(self, name: str, color: Color) -> None:
        """Set the color of a material."""
        self.model.material(name).rgba = (*color, 1)

    def paint(self, name: str, color: Color | None) -> None:
        """Set the color of one body; None hides it and its shadow."""
        self.model.geom(name).rgba = (0, 0, 0, 0) if color is None else (*color, 1)

    def place_camera(self, azimuth: float, elevation: float, distance: float) -> None:
        """Place the camera: angles in degrees, distance in units of the scene."""
        self.camera.azimuth, self.camera.elevation, self.camera.distance = azimuth, elevation, distance

    def render(self) -> np.ndarray:
        """Return what the camera sees, (64, 64, 3) bytes."""
        # An image needs only the positions of bodies and lights. A step of the physics would cost more and move them.
        self.library.mj_kinematics(self.model, self.state)
        self.library.mj_camlight(self.model, self.state)
        self.renderer.update_scene(self.state, self.camera)
        return self.renderer.render()
