"""The Prometheus text format, as far as the tests need it, and the ledger's balance."""

import re
from collections import defaultdict

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


class Metrics:
    """One scrape."""

    def __init__(self, text):
        self.text = text
        self.types = {}
        self.helps = {}
        self.samples = defaultdict(list)  # name -> [(labels, value)]
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ", 3)
                self.types[name] = kind
            elif line.startswith("# HELP "):
                _, _, name, text_ = line.split(" ", 3)
                self.helps[name] = text_
            elif line and not line.startswith("#"):
                match = _SAMPLE.match(line)
                assert match, f"not a sample: {line!r}"
                labels = dict(_LABEL.findall(match.group(2) or ""))
                self.samples[match.group(1)].append((labels, float(match.group(3))))

    def series(self, name, **labels):
        """[(labels, value)] of the samples that have these labels."""
        return [
            (have, value)
            for have, value in self.samples.get(name, [])
            if all(have.get(key) == wanted for key, wanted in labels.items())
        ]

    def sum(self, name, **labels):
        """The sum of the samples that have these labels; 0 if there is none."""
        return sum(value for _, value in self.series(name, **labels))

    def one(self, name, **labels):
        found = self.series(name, **labels)
        assert len(found) == 1, f"{name}{labels}: {len(found)} series"
        return found[0][1]

    def feed_state(self, feed):
        states = [
            have["state"]
            for have, value in self.series("framelane_feed_state", feed=feed)
            if value == 1
        ]
        assert len(states) == 1, f"feed {feed} is in the states {states}"
        return states[0]

    def check_ledger(self):
        """Checks that in = out + dropped + in_flight for the frames of every encode, and for the
        sound of those that transcode it."""
        for what, per_encode in (("frames", False), ("audio_packets", True)):
            for labels, out in self.samples.get(f"framelane_{what}_out_total", []):
                encode = {"feed": labels["feed"], "encode": labels["encode"]}
                came_in = self.one(f"framelane_{what}_in_total",
                                   **(encode if per_encode else {"feed": labels["feed"]}))
                dropped = self.sum(f"framelane_{what}_dropped_total", **encode)
                in_flight = self.one(f"framelane_{what}_in_flight", **encode)
                assert in_flight >= 0, f"{encode}: {what} in flight {in_flight}"
                assert came_in == out + dropped + in_flight, (
                    f"{encode}: {what}: {came_in:.0f} in, {out:.0f} out, {dropped:.0f} dropped,"
                    f" {in_flight:.0f} in flight"
                )
