"""Invented messages in plain English, and questions with one right message each, for all servers.

Half of the questions use words of their message, half use synonyms. The other messages, made from patterns, are about
similar things. The same count gives the same messages.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    key: str
    """A label that is not in the text, for servers that want a title."""
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    answer: str
    """The text of the right message."""
    same_words: bool


_SAME = (
    ("Which hotel did we book in Lisbon?", "We booked the hotel Alegria in Lisbon, two rooms facing the yard."),
    ("What is the password rule of the staging server?", "The staging server wants a password rule of 20 characters."),
    ("Who repairs the coffee machine?", "Hanne from the second floor repairs the coffee machine, not facilities."),
    ("What did the dentist say about the crown?", "The dentist says the crown can wait until after the summer."),
    ("Which port does the metrics exporter use?", "The metrics exporter uses port 9187 since the last upgrade."),
    ("What is the name of Tomas's dog?", "Tomas has a new dog, a spaniel whose name is Pepper."),
    ("Why did we drop the Kafka connector?", "We dropped the Kafka connector because it lost offsets on each restart."),
    ("What does the landlord want to renovate?", "The landlord wants to renovate both bathrooms before winter."),
    ("Which chapter of the thesis is missing?", "The chapter on sampling is still missing from the thesis."),
    ("What is the limit for travel expenses?", "The limit for travel expenses without a receipt is 35 euros."),
    ("Where are the keys of the boat shed?", "The keys of the boat shed hang behind the pantry door."),
    ("Which font did the designer choose for the poster?", "The designer chose the font Archivo for the poster."),
)
_OTHER = (
    ("Who in the family has an apiary?", "My sister Ines keeps bees on a slope above the river."),
    ("Is there food that I must not be served?", "I come out in a rash from peanuts, so please leave them out."),
    ("How do I commute?", "I take my bicycle to the office in all weathers."),
    ("What made the checkout slow?", "The payment page took nine seconds since one index was gone."),
    ("When does the baby arrive?", "Our first child is due in the second week of March."),
    ("Which instrument am I learning?", "I started cello lessons, and the neighbours are patient so far."),
    (
        "Who will look after the flat while we are away?",
        "Mrs Okafor waters our plants and empties the mailbox in July.",
    ),
    ("What was wrong with the automobile?", "The garage replaced the clutch of the van, it was worn through."),
    ("Which illness did the cat have?", "The vet found a kidney infection and gave Minka tablets."),
    ("How should dates be written in reports?", "Please put day before month in everything you write for clients."),
    ("What did we agree on salaries?", "The board settled on a raise of three per cent for all from May."),
    ("Why can nobody sign in from home?", "The VPN certificate expired, so remote logins fail."),
)
QUESTIONS = tuple(
    Question(text=asked, answer=said, same_words=same)
    for pairs, same in ((_SAME, True), (_OTHER, False))
    for asked, said in pairs
)

_PEOPLE = [
    "Ada",
    "Bruno",
    "Chiara",
    "Dmitri",
    "Elif",
    "Femi",
    "Greta",
    "Hugo",
    "Irena",
    "Jonas",
    "Keiko",
    "Lars",
    "Mina",
    "Noor",
    "Omar",
    "Priya",
    "Quinn",
    "Rosa",
]
_THINGS = (
    "the printer", "the invoice", "the login form", "the garden fence", "the quarterly report", "the mobile app",
    "the lease", "the dishwasher", "the search index", "the brochure", "the budget", "the nightly backup",
    "the workshop", "the insurance", "the bicycle rack", "the contract", "the newsletter", "the heating",
)  # fmt: skip
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_PATTERNS = (
    "{person} will look at {thing} on {day} and call {other} about it.",
    "I moved the meeting about {thing} to {day} because {person} is travelling with {other}.",
    "{person} says {thing} costs {number} euros more than last year, and {other} disagrees.",
    "Remind me that {person} wants a list of {number} points on {thing} by {day}.",
    "After the test of {thing}, {person} found {number} errors, most of them in what {other} wrote.",
    "{thing} was ready on {day}, so {person} and {other} went home at {number} past five.",
    "Can you write to {person} that {thing} has to wait until {day}? {other} has the file, number {number}.",
)


def messages(count: int) -> list[Message]:
    """Return `count` messages (at least as many as questions), the right ones spread evenly among them."""
    rng = random.Random(count)
    told = [question.answer for question in QUESTIONS]
    rng.shuffle(told)
    texts = list(unique(count - len(told)))
    step = count / len(told)
    for place, text in enumerate(told):
        texts.insert(round(place * step), text)
    return [Message(key=f"note-{number:05d}", text=text) for number, text in enumerate(texts)]


def unique(count: int, *, seed: int = 0) -> list[str]:
    """Return `count` distinct messages that answer no question, in order."""
    rng = random.Random(f"others {seed}")
    found: dict[str, None] = {}
    while len(found) < count:
        person, other = rng.sample(_PEOPLE, 2)
        text = rng.choice(_PATTERNS).format(
            person=person, other=other, thing=rng.choice(_THINGS), day=rng.choice(_DAYS), number=rng.randrange(2, 999)
        )
        found[text[0].upper() + text[1:]] = None
    return list(found)
