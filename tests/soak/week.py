"""Plays the bad week: rounds of scenes, and what must hold in and after each."""

import contextlib
import http.client
import os
import random
import subprocess
import time

from soak import (admin_scenes, command_scenes, output_scenes, process_scenes,  # noqa: F401
                  source_scenes)
from soak.recordings import Recordings
from soak.report import Report
from soak.scene import TABLE, choose
from soak.site import Site
from soak.watch import Watch

# What goes wrong in a scene that expects something: an answer, a state, a file.
_FAULTS = (AssertionError, OSError, ValueError, subprocess.SubprocessError,
           http.client.HTTPException)


class Week:
    def __init__(self, folder, seed):
        self._seed = seed
        self._site = Site(folder)
        self._report = Report(folder, self._site, seed)
        self._watch = Watch(self._site, self._report)
        self._recordings = Recordings(self._site, self._report, random.Random(f"{seed} recordings"))

    def play(self, minutes, rounds, only):
        end = time.monotonic() + 60 * minutes
        number = 0
        try:
            self._site.start()
            self._site.daemon.wait_ready()
            self._watch.wait_until_well()
            while time.monotonic() < end and (not rounds or number < rounds):
                number += 1
                self._play_round(number, only)
            self._end()
        finally:
            self._site.close()
        return self._report.end(number)

    def _play_round(self, number, only):
        dice = random.Random(f"{self._seed} {number}")
        scenes = [TABLE[name] for name in only] or choose(dice)
        hold = dice.choice([0.2, 1, 3, 6, 9])
        self._report.playing = f"round {number}: {', '.join(scene.name for scene in scenes)}"
        try:
            with contextlib.ExitStack() as stack:
                words = []
                for scene in scenes:
                    own = random.Random(f"{self._seed} {number} {scene.name}")
                    chosen = stack.enter_context(scene.play(self._site, own))
                    words.append(f"{scene.name} ({chosen})" if chosen else scene.name)
                self._report.playing = f"round {number}: {', '.join(words)}; for {hold} s"
                self._report.say(self._report.playing)
                self._hold(hold)
        except _FAULTS as error:
            self._report.fault("scene", f"{type(error).__name__}: {error}")
        self._site.away = False
        if self._watch.wait_until_well():
            self._watch.settle()
        else:
            self._begin_anew()
        self._recordings.check()

    def _hold(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._watch.look()
            time.sleep(0.4)

    def _begin_anew(self):
        """After what does not get well by itself, so that the next rounds can find more."""
        try:
            self._site.stop()
        except AssertionError as error:
            self._report.fault("stop", str(error))
            self._site.kill()
        self._site.start()
        self._site.daemon.wait_ready()
        self._watch.wait_until_well()

    def _end(self):
        self._report.playing = "the end"
        try:
            self._site.stop()
        except AssertionError as error:
            self._report.fault("stop", str(error))
        self._recordings.check()


def names():
    return sorted(TABLE)


def play(folder, seed, minutes, rounds, only):
    os.nice(5)
    return Week(folder, seed).play(minutes, rounds, only)
