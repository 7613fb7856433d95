"""Parts of known names mean their bearers."""

from __future__ import annotations

from mcp_memory.longterm.known_names import KnownNames


def named(text: str, *known: str, names: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the entities that a text names after these names are known."""
    entities = KnownNames([], [])
    entities.add(known)
    entities.add(names)
    return entities.named_in(text, names)


def test_a_part_of_a_name_means_its_bearer() -> None:
    assert named("Teun called", "Teun Verhage") == ("Teun Verhage",)
    assert named("Teun called", "Teun Verhage", "Teun Maas") == ()


def test_several_words_of_a_name_mean_the_only_one_that_has_them_all() -> None:
    known = ("Theater De Kaai", "Joris De Smet")
    assert named("the offer for De Kaai", *known, names=("De Kaai",)) == ("Theater De Kaai",)
    assert named("Anna De Kaai called", *known, names=("Anna De Kaai",)) == ("Anna De Kaai",)


def test_a_name_of_two_things_is_not_called_by_one_of_them() -> None:
    assert named("Draad is thread in Dutch", "Naald en Draad") == ()
