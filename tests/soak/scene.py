"""A scene: something goes wrong when it begins, and is mended when it ends."""

import contextlib
import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Scene:
    name: str
    touches: frozenset  # parts of the site; scenes that touch the same one are not played together
    weight: float  # how often it is played, beside others
    begin: typing.Callable  # begin(site, dice): a generator, which yields words about its choices

    @contextlib.contextmanager
    def play(self, site, dice):
        """It is mended too if another scene beside it has failed."""
        course = self.begin(site, dice)
        words = next(course)
        try:
            yield words
        finally:
            next(course, None)


TABLE = {}


def scene(*touches, weight=1.0):
    """Enters a generator function (site, dice) into the table. What it does before its `yield` goes
    wrong; what it does after it mends. It takes all chance from `dice`, and never asks `dice` after
    waiting for something that may come out either way."""

    def enter(function):
        TABLE[function.__name__] = Scene(function.__name__, frozenset(touches), weight, function)
        return function

    return enter


def lose(program, dice):
    """Part of a scene: a program is killed or frozen while the scene lasts."""
    way = dice.choice(["killed", "frozen"])
    program.freeze() if way == "frozen" else program.kill()
    yield way
    program.thaw() if way == "frozen" else program.start()


def choose(dice):
    """One to three scenes that do not touch the same part. Those of the process come last, so that
    they end first, and the others end beside a daemon that runs."""
    wanted, chosen, touched = dice.choice([1, 1, 2, 2, 3]), [], set()
    names = sorted(TABLE)
    while len(chosen) < wanted:
        pick = TABLE[dice.choices(names, [TABLE[name].weight for name in names])[0]]
        if not pick.touches & touched:
            chosen.append(pick)
            touched |= pick.touches
    return sorted(chosen, key=lambda one: ("process" in one.touches, one.name))
