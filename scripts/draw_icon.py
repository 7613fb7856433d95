"""Draws the icon of the plugin and of the desktop extension: a pyramid with a bright tip.

Its four layers are turns, atoms, scenes and the persona. Shapes are drawn as coverage of each pixel, sampled
four times a side, so that edges are smooth; the PNG is written by hand, so only numpy is needed.

    python -m scripts.draw_icon [FILE]      default: plugin/icon.png
"""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

SIDE = 512
SAMPLES = 4
RADIUS = 112
TOP, BOTTOM, HALF = 112, 398, 178  # the pyramid: y of its tip and its foot, half of its width
GAP, ROUND = 20, 7
CENTRE = SIDE / 2

NIGHT, DUSK = (24, 32, 66), (52, 74, 128)
LAYERS = [(255, 196, 92), (226, 232, 246), (176, 192, 226), (126, 148, 198)]  # from the tip down

Plane = npt.NDArray[np.float64]


def draw() -> npt.NDArray[np.uint8]:
    """Return the picture: `SIDE` × `SIDE` × RGBA."""
    places = (np.arange(SIDE * SAMPLES, dtype=np.float64) + 0.5) / SAMPLES
    x, y = np.meshgrid(places, places)
    blend = ((x + y) / (2 * SIDE))[..., None]
    colours = np.array(DUSK, np.float64) * (1 - blend) + np.array(NIGHT, np.float64) * blend
    for inside, colour in zip(_layers(x, y), LAYERS, strict=True):
        colours[inside] = colour
    alpha = _rounded_square(x, y)[..., None] * np.float64(255)
    fine = np.concatenate([colours * (alpha / 255), alpha], axis=2)
    coarse = fine.reshape(SIDE, SAMPLES, SIDE, SAMPLES, 4).mean(axis=(1, 3))
    opaque = np.maximum(coarse[..., 3:], 1) / 255
    return np.concatenate([coarse[..., :3] / opaque, coarse[..., 3:]], axis=2).round().clip(0, 255).astype(np.uint8)


def _rounded_square(x: Plane, y: Plane) -> npt.NDArray[np.bool_]:
    dx = np.maximum(np.abs(x - CENTRE) - (CENTRE - RADIUS), 0)
    dy = np.maximum(np.abs(y - CENTRE) - (CENTRE - RADIUS), 0)
    return dx * dx + dy * dy <= RADIUS * RADIUS


def _layers(x: Plane, y: Plane) -> list[npt.NDArray[np.bool_]]:
    """The four layers from the tip down, each a slice of the triangle with rounded corners."""
    height = (BOTTOM - TOP - 3 * GAP) / 4
    slope = HALF / (BOTTOM - TOP)
    lean = np.hypot(1, slope)  # distance to a side of the triangle, per unit across
    layers: list[npt.NDArray[np.bool_]] = []
    for nth in range(4):
        above = TOP + nth * (height + GAP)
        side = (np.abs(x - CENTRE) - slope * (y - TOP)) / lean
        # A shape shrunk by the radius and grown again by it has round corners.
        out = [np.maximum(each + ROUND, 0) for each in (side, above - y, y - (above + height))]
        layers.append(np.sqrt(sum(each * each for each in out)) <= ROUND)
    return layers


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return rows × columns × RGBA as a PNG."""
    rows, columns, _ = pixels.shape
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    ]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "plugin/icon.png").write_bytes(png(draw()))
