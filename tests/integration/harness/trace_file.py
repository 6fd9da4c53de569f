"""Reads a trace as strictly as Perfetto would have to: whatever it would have to guess is an error."""

import collections
import decimal
import json

KINDS = {"packet", "read", "decode", "wait", "h2d", "kernel", "d2h", "encode", "mux", "drop"}
# In the order in which a frame comes to them. (An output writes a copied packet while it is decoded.)
WAY = ["packet", "decode", "wait", "h2d", "kernel", "d2h", "encode"]
MARKS = {"packet", "drop"}

# An incident: `time` in nanoseconds from the trace's begin; `everywhere`: of no feed alone.
Mark = collections.namedtuple("Mark", "time name process text everywhere")
Slice = collections.namedtuple("Slice", "kind process thread begin end frame flow flow_in flow_out reason")


def _refuse(text):
    raise AssertionError(f"{text} is no number in JSON")


def _exact(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key twice: {keys}"
    return dict(pairs)


class Trace:
    """`slices` by time; times in nanoseconds from the trace's begin. `threads`: the names of (process, thread).
    `marks`: its incidents."""

    def __init__(self, text):
        root = json.loads(text, object_pairs_hook=_exact, parse_float=decimal.Decimal, parse_constant=_refuse)
        assert set(root) == {"displayTimeUnit", "otherData", "traceEvents"}
        self.bounds = root["otherData"]
        self.slices = []
        self.marks = []
        processes, threads = {}, {}
        for event in root["traceEvents"]:
            if event["ph"] == "M":
                self._name(event, processes, threads)
        self.threads = set()
        for event in root["traceEvents"]:
            if event["ph"] == "i":
                self.marks.append(self._mark(event, processes, threads))
            elif event["ph"] != "M":
                assert event["ph"] == "X", event
                self.slices.append(self._slice(event, processes, threads))
        self.slices.sort(key=lambda s: (s.begin, -s.end))
        self._check_nesting()
        self._check_flows()

    def _name(self, event, processes, threads):
        if event["name"] == "process_name":
            assert event["pid"] > 0 and event["pid"] not in processes, event
            processes[event["pid"]] = event["args"]["name"]
        elif event["name"] == "thread_name":
            key = event["pid"], event["tid"]
            assert event["pid"] in processes and key not in threads, event
            threads[key] = event["args"]["name"]
        else:
            assert event["name"] == "thread_sort_index", event

    def _slice(self, event, processes, threads):
        allowed = {"ph", "name", "pid", "tid", "ts", "dur", "bind_id", "flow_in", "flow_out", "args"}
        assert set(event) <= allowed, event
        key = event["pid"], event["tid"]
        assert key in threads, f"a slice of a thread without a name: {event}"
        self.threads.add((processes[event["pid"]], threads[key]))
        begin, length = (decimal.Decimal(event[name]) * 1000 for name in ("ts", "dur"))
        assert begin == int(begin) >= 0 and length == int(length) >= 0, event
        kind = event["name"]
        assert kind in KINDS, event
        assert length == 0 or kind not in MARKS, event
        arguments = event.get("args", {})
        flow = event.get("bind_id")
        of_feed = processes[event["pid"]].startswith("feed ")
        assert (flow is not None) == ("frame_time_us" in arguments and of_feed), event
        assert (flow is not None) == bool(event.get("flow_out")), event
        assert flow is None or bool(event.get("flow_in")) == (kind != "packet"), event
        assert (kind == "drop") == ("reason" in arguments), event
        return Slice(kind, processes[event["pid"]], threads[key], int(begin), int(begin + length),
                     arguments.get("frame_time_us"), flow, event.get("flow_in"), event.get("flow_out"),
                     arguments.get("reason"))

    def _mark(self, event, processes, threads):
        assert set(event) == {"ph", "s", "name", "pid", "tid", "ts", "args"}, event
        process = processes[event["pid"]]
        assert threads[event["pid"], event["tid"]] == "incidents", event
        assert event["s"] == ("p" if process.startswith("feed ") else "g"), event
        assert set(event["args"]) == {"text"} and event["args"]["text"], event
        time = decimal.Decimal(event["ts"]) * 1000
        assert time == int(time) >= 0, event
        return Mark(int(time), event["name"], process, event["args"]["text"], event["s"] == "g")

    def _check_nesting(self):
        stacks = collections.defaultdict(list)
        for s in self.slices:
            stack = stacks[s.process, s.thread]
            while stack and stack[-1].end <= s.begin:
                stack.pop()
            assert not stack or s.end <= stack[-1].end, f"{s} crosses {stack[-1]}"
            stack.append(s)

    def _check_flows(self):
        """A flow is one frame's, and goes forward: each part of the way begins no earlier than the one before."""
        flows = collections.defaultdict(list)
        for s in self.slices:
            if s.flow:
                flows[s.flow].append(s)
        for name, slices in flows.items():
            assert len({(s.process, s.frame) for s in slices}) == 1, f"{name} joins two frames: {slices}"
        self.frames = {(slices[0].process.removeprefix("feed "), slices[0].frame): slices
                       for slices in flows.values()}
        for slices in self.frames.values():
            # An encode that takes frames as they come may have one before the others' is converted.
            firsts = [(max if kind == "encode" else min)(s.begin for s in slices if s.kind == kind)
                      for kind in WAY if any(s.kind == kind for s in slices)]
            assert firsts == sorted(firsts), slices

    def of(self, kind, process=None, thread=None):
        return [s for s in self.slices if s.kind == kind and process in (None, s.process)
                and thread in (None, s.thread)]

    def seconds(self, kind, process, thread=None):
        """The sum of the lengths."""
        return sum(s.end - s.begin for s in self.of(kind, process, thread)) / 1e9
