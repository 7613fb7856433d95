"""Fit the models of the relevance of rules: `python scripts/fit_rule_relevance.py`.

They tell which standing rules govern a prompt and whether a later message ends a rule; the parameters are described in
`mcp_memory/models/embed/rule_relevance.py`. Sources, all below `fixtures/rules`:

    relevance/parts/topics.jsonl  rules, tasks and questions of 32 kinds of work, in English: the projection, and what
                                  tells a task from a question
    relevance/*.jsonl             twelve memories in six languages: the weights of both features of `scoped`
    relevance/parts/ended.jsonl   pairs of messages, with those of the memories: `ends`
    relevance/parts/general.jsonl rules that hold for every answer, and others like them that do not: `general`, with
                                  the rules of the memories, the topics and those of `*.jsonl` whose kind says it

and for `general_query`, which finds the candidates of a memory, also the sentences of `*.jsonl` that are no rules.

It prints precision and recall on the memories by regressions of `scoped` and `ends` that were fitted without each in
turn (the projection, `task` and `general_query` see no memory). `ends` is printed twice: for messages with words of
change, which recall shows in front of a rule, and for those that take something back, which it shows instead of one.
That needs a precision of 95 %.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fit_rules import fit_logistic
from numpy.typing import NDArray
from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

from bench.rule_relevance import MEMORIES, RuleMemory, read_memories
from mcp_memory.longterm.recall.rules import takes_back, tells_change
from mcp_memory.models.embed.bundled import MODEL, shared_encoder
from mcp_memory.models.embed.rule_relevance import RELEVANCE_FILE, RelevanceModel

FIXTURES = MEMORIES.parent
GENERAL = (
    "language", "tone", "length", "emoji", "form of address", "address", "honesty", "units", "accessibility", "gender",
    "register", "options", "traditional zh", "stop", "dates", "spelling", "polite_question", "sloppy",
)  # fmt: skip
"""Kinds of labelled rules that hold for every answer."""
SCOPED = (
    "scoped rule", "scoped", "scoped project", "coding", "cooking", "travel", "music", "git", "code", "office",
    "schedule", "diet", "medical", "games", "finance", "law", "tests", "shell", "school", "refactor", "kids", "domain",
    "codigo", "conditional", "parenting", "learning", "coding agent", "workflow",
)  # fmt: skip
DIMENSIONS, SHRINKAGE = 30, 0.8
PROBE_RIDGE = 100.0
LIMITS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.5)
RIDGE = 0.5

Floats = NDArray[np.float64]


_Pair = tuple[Floats, bool, str]
"""The features of a pair, whether it is right, and the memory that it is of."""


class Pairs(NamedTuple):
    """Rows of features, whether each is right, and the memory that it is of."""

    rows: Floats
    right: Floats
    memory: NDArray[np.str_]


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def embed(texts: Sequence[str]) -> Floats:
    return shared_encoder().embed(texts).astype(np.float64)


def fitted_projection(topics: Sequence[dict[str, Any]]) -> dict[str, Floats]:
    """Return the projection that separates topics (discriminant analysis with a shrunken scatter), and both means.

    Rules and tasks are centred separately, so that the difference between a rule and a task is not one of topic.
    """
    rules, tasks = ([embed(topic[side]) for topic in topics] for side in ("rules", "tasks"))
    rule_mean, task_mean = np.vstack(rules).mean(axis=0), np.vstack(tasks).mean(axis=0)
    centres: list[Floats] = []
    scatter: Floats = np.zeros((len(rule_mean), len(rule_mean)))
    for some, others in zip(rules, tasks, strict=True):
        rows = np.vstack([some - rule_mean, others - task_mean])
        share = np.repeat([0.5 / len(some), 0.5 / len(others)], [len(some), len(others)])
        centre = share @ rows
        centres.append(centre)
        scatter += ((rows - centre).T * share) @ (rows - centre) / len(topics)
    even: Floats = np.eye(len(scatter)) * float(np.trace(scatter)) / len(scatter)
    shrunken: Any = (1 - SHRINKAGE) * scatter + SHRINKAGE * even
    whitening: Floats = np.asarray(np.linalg.cholesky(np.linalg.inv(shrunken)), np.float64)  # pyright: ignore[reportUnknownArgumentType]  numpy types inv of Any so
    separated: Floats = np.array(centres) @ whitening
    _, _, axes = np.linalg.svd(separated - separated.mean(axis=0), full_matrices=False)
    projection: Floats = whitening @ axes[:DIMENSIONS].T
    projection /= np.abs(projection).max()
    return {"projection": projection, "prompt_mean": task_mean @ projection, "rule_mean": rule_mean @ projection}


def fitted_task(topics: Sequence[dict[str, Any]]) -> Floats:
    tasks, questions = ([text for topic in topics for text in topic[side]] for side in ("tasks", "questions"))
    right = np.repeat([1.0, 0.0], [len(tasks), len(questions)])
    return _probe(embed([*tasks, *questions]), right)


def fitted_general(topics: Sequence[dict[str, Any]], memories: Sequence[RuleMemory]) -> Floats:
    rows = [row for path in sorted(FIXTURES.glob("*.jsonl")) for row in json_lines(path)]
    labelled = [*_labelled(rows), *((rule, False) for topic in topics for rule in topic["rules"])]
    labelled += [
        (sentence.text, sentence.general) for memory in memories for sentence in memory.said if sentence.is_rule
    ]
    texts, right = zip(*labelled, strict=True)
    return _probe(embed(texts), np.array(right))


def fitted_general_query(topics: Sequence[dict[str, Any]]) -> Floats:
    rows = [row for path in sorted(FIXTURES.glob("*.jsonl")) for row in json_lines(path)]
    labelled = [*_labelled(rows), *((row["text"], False) for row in rows if not row["rule"])]
    labelled += [(text, False) for topic in topics for side in ("rules", "tasks", "questions") for text in topic[side]]
    texts, right = zip(*labelled, strict=True)
    return _probe(embed(texts), np.array(right))[:-1]


def _labelled(rows: Sequence[dict[str, Any]]) -> list[tuple[str, bool]]:
    """Return rules, each with whether it is about every answer."""
    labelled = [(row["text"], row["kind"] in GENERAL) for row in rows if _is_of_kind(row)]
    return labelled + [(row["rule"], row["general"]) for row in json_lines(MEMORIES / "parts/general.jsonl")]


def _is_of_kind(row: dict[str, Any]) -> bool:
    return row["rule"] and row.get("kind") in (*GENERAL, *SCOPED)


def _probe(vectors: Floats, right: NDArray[Any]) -> Floats:
    """Return a regression on vectors, the constant last."""
    return fit_logistic(vectors, right.astype(np.float64), ridge=PROBE_RIDGE)


def scoped_pairs(memories: Sequence[RuleMemory], model: RelevanceModel) -> Pairs:
    pairs: list[_Pair] = []
    for memory in memories:
        rules = [sentence for sentence in memory.current if not sentence.general]
        vectors = embed([rule.text for rule in rules]).astype(np.float32)
        for prompt, asked in zip(
            memory.prompts, embed([prompt_row.text for prompt_row in memory.prompts]), strict=True
        ):
            for rule, features in zip(rules, model.features(asked.astype(np.float32), vectors), strict=True):
                pairs.append((features.astype(np.float64), rule.id in prompt.rules, memory.name))
    return _pairs(pairs)


def ending_pairs(memories: Sequence[RuleMemory]) -> tuple[Pairs, Floats]:
    """Return the pairs, and whether the newer message of each takes something back."""
    told = [(*pair, memory.name) for memory in memories for pair in memory.pairs()]
    told += [(row["older"], row["newer"], row["ends"], "pairs") for row in json_lines(MEMORIES / "parts/ended.jsonl")]
    older, newer = embed([texts[0] for texts in told]), embed([texts[1] for texts in told])
    cosines = (older * newer).sum(axis=1).tolist()
    pairs = _pairs(
        [
            (np.array([cosine, tells_change(text)]), ends, name)
            for cosine, (_, text, ends, name) in zip(cosines, told, strict=True)
        ]
    )
    return pairs, np.array([takes_back(text) for _, text, _, _ in told], np.float64)


def _pairs(pairs: Sequence[_Pair]) -> Pairs:
    rows, right, names = zip(*pairs, strict=True)
    return Pairs(np.array(rows, np.float64), np.array(right, np.float64), np.array(names))


def left_out(pairs: Pairs, *, ridge: float) -> Floats:
    """Return the probability of each pair, by a regression that was fitted without its memory."""
    chances = np.zeros(len(pairs.right))
    for name in sorted(set(pairs.memory.tolist())):
        own = pairs.memory == name
        weights = fit_logistic(pairs.rows[~own], pairs.right[~own], ridge=ridge)
        chances[own] = 1 / (1 + np.exp(-(pairs.rows[own] @ weights[:-1] + weights[-1])))
    return chances


def table(title: str, right: Floats, chances: Floats) -> Iterator[str]:
    """Yield precision and recall at some limits."""
    yield title
    for limit in LIMITS:
        shown = chances >= limit
        precision, recall = right[shown].mean(), right[shown].sum() / right.sum()
        yield f"p >= {limit:<5} {shown.sum():4} shown, precision {precision:6.1%} recall {recall:6.1%}"


def main() -> None:
    topics, memories = json_lines(MEMORIES / "parts/topics.jsonl"), read_memories()
    parts: dict[str, Floats] = {
        **fitted_projection(topics),
        "task": fitted_task(topics),
        "general": fitted_general(topics, memories),
        "general_query": fitted_general_query(topics),
        "scoped": np.zeros(3),
        "ends": np.zeros(3),
    }
    model = RelevanceModel(**{name: part.astype(np.float32) for name, part in parts.items()})
    scoped, (ends, taking_back) = scoped_pairs(memories, model), ending_pairs(memories)
    for name, pairs in (("scoped", scoped), ("ends", ends)):
        parts[name] = fit_logistic(pairs.rows, pairs.right, ridge=RIDGE)
        print(f"{name}: {len(pairs.right)} pairs, weights {parts[name].round(2).tolist()}")
    ending = left_out(ends, ridge=RIDGE)
    print("\n".join(table("scoped", scoped.right, left_out(scoped, ridge=RIDGE))))
    print("\n".join(table("ends, with words of change", ends.right, ending * ends.rows[:, 1])))
    print("\n".join(table("ends, taking something back", ends.right, ending * taking_back)))
    projection = parts.pop("projection")
    scale: Floats = np.abs(projection).max(axis=0) / 127
    stored: dict[str, NDArray[Any]] = {name: part.astype(np.float32) for name, part in parts.items()}
    stored["projection"] = np.round(projection / scale).astype(np.int8)
    stored["projection_scale"] = scale.astype(np.float32)
    (MODEL / RELEVANCE_FILE).write_bytes(save(stored))


if __name__ == "__main__":
    main()
