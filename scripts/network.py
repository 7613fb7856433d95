"""A small network on features of the bundled encoder, which `fit_rules.py` and `fit_prompt_gate.py` fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BATCH, RATE, DECAY, DROPPED = 256, 2e-3, 1.0, 0.5

Floats = NDArray[np.floating[Any]]


class Network(NamedTuple):
    """A hidden layer plus a linear part: `relu(rows @ hidden + shift) @ out + rows @ direct + constant`."""

    hidden: Floats
    shift: Floats
    out: Floats
    direct: Floats
    constant: Floats

    def scores(self, rows: Floats) -> Floats:
        """Return the log-odds of rows of features."""
        return np.maximum(rows @ self.hidden + self.shift, 0) @ self.out + rows @ self.direct + self.constant


def fit_network(rows: Floats, right: Floats, weight: Floats, *, hidden: int, epochs: int) -> Network:
    """Return a network fitted with Adam and dropout; its weights are those of rows that are not scaled."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    rows = (rows - mean) / spread
    chance = np.random.default_rng(0)
    width = rows.shape[1]
    start = chance.normal(size=(width, hidden)) / np.sqrt(width), chance.normal(size=hidden) / np.sqrt(hidden)
    inner, out = (weights.astype(np.float32) for weights in start)
    network = Network(inner, np.zeros(hidden, np.float32), out, np.zeros(width, np.float32), np.zeros(1, np.float32))
    first: list[Floats] = [np.zeros_like(weights) for weights in network]
    second: list[Floats] = [np.zeros_like(weights) for weights in network]
    step, steps = 0, epochs * (len(rows) // BATCH)
    for _ in range(epochs):
        order = chance.permutation(len(rows))
        for begin in range(0, len(rows) - BATCH + 1, BATCH):
            chosen = order[begin : begin + BATCH]
            step += 1
            slopes = slopes_of(network, rows[chosen], right[chosen], weight[chosen], chance)
            rate = RATE * (1 - step / (steps + 1))
            for at, (values, slope) in enumerate(zip(network, slopes, strict=True)):
                first[at] = 0.9 * first[at] + 0.1 * slope
                second[at] = 0.99 * second[at] + 0.01 * slope * slope
                change = first[at] / (1 - 0.9**step) / (np.sqrt(second[at] / (1 - 0.99**step)) + 1e-8)
                values -= rate * (change + (DECAY * values if at < len(network) - 1 else 0))
    inner, direct = network.hidden / spread[:, None], network.direct / spread
    return Network(inner, network.shift - mean @ inner, network.out, direct, network.constant - mean @ direct)


def slopes_of(
    network: Network, rows: Floats, right: Floats, weight: Floats, chance: np.random.Generator
) -> tuple[Floats, ...]:
    """Return the gradients of the loss, with a part of the inputs and of the hidden layer dropped."""
    rows = rows * kept(rows.shape, chance)
    before = rows @ network.hidden + network.shift
    used = kept(before.shape, chance) * (before > 0)
    scores = (before * used) @ network.out + rows @ network.direct + network.constant
    error = ((1 / (1 + np.exp(-scores)) - right) * weight / len(rows)).astype(np.float32)
    back = np.outer(error, network.out) * used
    return rows.T @ back, back.sum(axis=0), (before * used).T @ error, rows.T @ error, error.sum(keepdims=True)


def kept(shape: tuple[int, ...], chance: np.random.Generator) -> Floats:
    return ((chance.random(shape, dtype=np.float32) > DROPPED) / (1 - DROPPED)).astype(np.float32)


def quantised(network: Network) -> dict[str, NDArray[Any]]:
    """Return a network as tensors; its hidden layer is in bytes, with a scale for each unit."""
    scale = np.abs(network.hidden).max(axis=0) / 127 + 1e-12
    shift, out, direct, constant = (np.asarray(part, np.float32) for part in network[1:])
    return {
        "hidden": np.asarray(np.round(network.hidden / scale), np.int8),
        "hidden_scale": np.asarray(scale, np.float32),
        "shift": shift,
        "out": out,
        "direct": direct,
        "constant": constant,
    }
