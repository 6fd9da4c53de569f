"""What was found, with the evidence for each."""

import collections
import re
import shutil
import time

_SHOWN = 3  # a fault that comes again and again is counted, but its evidence is kept only so often
_LOG_END = 400_000  # bytes of the log's end that are kept


class Report:
    def __init__(self, folder, site, seed):
        self._folder = folder
        self._site = site
        self._seed = seed
        self.playing = "start"  # the round and its scenes
        self.faults = collections.Counter()

    def say(self, text):
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)

    def fault(self, check, found, *evidence):
        """`found` says what was expected and what came instead; `evidence`: files to keep."""
        kind = check + ": " + re.sub(r"\d+", "N", found.splitlines()[0])[:160]
        self.faults[kind] += 1
        if self.faults[kind] > _SHOWN:
            return
        kept = self._folder / f"fault-{sum(self.faults.values())}"
        kept.mkdir()
        (kept / "fault.txt").write_text(
            f"seed {self._seed}, {self.playing}\n{check}: {found}\n", errors="backslashreplace")
        (kept / "feeds.json").write_text(self._site.describe())
        shutil.copy(self._site.daemon.config_path, kept)
        with open(self._site.daemon.log_path, "rb") as log:
            log.seek(max(0, self._site.daemon.log_path.stat().st_size - _LOG_END))
            (kept / "framelane.log").write_bytes(log.read())
        for path in evidence:
            shutil.copy(path, kept)
        self.say(f"FAULT {check}: {found.splitlines()[0][:300]}\n"
                 f"  seed {self._seed}, {self.playing}; evidence in {kept}")

    def end(self, rounds):
        self.say(f"seed {self._seed}: {rounds} rounds, {sum(self.faults.values())} faults of"
                 f" {len(self.faults)} kinds")
        for kind, count in self.faults.most_common():
            print(f"{count:5} {kind}")
        return 1 if self.faults else 0
