"""A headless Chromium that plays a playlist with hls.js, and tells what it sees."""

import functools
import http.server
import json
import pathlib
import queue
import subprocess
import threading

from harness.daemon import ROOT

# As scripts/install-dependencies --test fetches it.
HLS_JS = ROOT / "build" / "tools" / "hls.min.js"

# Plays, and every time that `stay` seconds have been shown in one size asks for the next one of
# `levels`. Reports the widths shown, and, since it asked for the first time (it begins with a jump to the
# live edge), the player's jumps and hls.js's errors. That it waits for data is neither, since a busy machine
# makes it wait. If the streams are at fault, hls.js ends the wait with a jump, or it does not end,
# and no report comes.
PAGE = """<!doctype html><title>hls.js</title><video muted width=320 height=240></video>
<script src="/hls.js"></script><script>
const wanted = LEVELS, stay = STAY, video = document.querySelector("video");
const seen = {widths: [], jumps: [], errors: []};
const hls = new Hls({startLevel: wanted[0], capLevelToPlayerSize: false, liveSyncDurationCount: 4,
                     highBufferWatchdogPeriod: 30});
let since = null, asked = 0;
video.onseeking = () => { if (asked > 0) seen.jumps.push(video.currentTime); else since = null; };
hls.on(Hls.Events.ERROR, (_, data) => {
  if (asked > 0 && data.details !== "bufferStalledError") seen.errors.push(data.details);
});
hls.on(Hls.Events.MANIFEST_PARSED, () => { hls.loadLevel = wanted[0]; });
const timer = setInterval(() => {
  if (video.paused || video.seeking || video.readyState < 3) return;
  if (seen.widths.at(-1) !== video.videoWidth) {
    seen.widths.push(video.videoWidth);
    since = null;
  }
  since ??= video.currentTime;
  if (video.currentTime - since < stay || asked >= seen.widths.length) return;
  asked = seen.widths.length;
  if (asked < wanted.length) { hls.nextLevel = wanted[asked]; return; }
  clearInterval(timer);
  fetch("/report", {method: "POST", body: JSON.stringify(seen)});
}, 20);
hls.loadSource("/media/PLAYLIST");
hls.attachMedia(video);
video.play();
</script>"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *arguments, folder, page, reports, **more):
        self._page, self._reports = page, reports
        super().__init__(*arguments, directory=str(folder), **more)

    def _answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/":
            return self._answer(self._page.encode(), "text/html")
        if self.path == "/hls.js":
            return self._answer(HLS_JS.read_bytes(), "text/javascript")
        self.path = self.path.removeprefix("/media")
        return super().do_GET()

    def do_POST(self):
        self._reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer(b"", "text/plain")

    def log_message(self, *_):
        pass


def play(start, folder, playlist, levels, stay, scratch):
    """Plays the playlist in the folder, `stay` seconds of each level, and returns what was seen."""
    page = PAGE.replace("LEVELS", json.dumps(levels)).replace("STAY", str(stay)).replace(
        "PLAYLIST", playlist)
    return show(start, folder, page, scratch)


def show(start, folder, page, scratch, timeout=60):
    """Shows a page, beside which are the folder's files and hls.js, and returns what it POSTs to /report.
    `start` is the fixture, `scratch` a folder for the browser's profile."""
    reports = queue.Queue()
    handler = functools.partial(_Handler, folder=folder, page=page, reports=reports)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    scratch = pathlib.Path(scratch)
    scratch.mkdir(exist_ok=True)
    log = scratch / "chromium.log"
    try:
        with open(log, "wb") as output:
            browser = start(
                "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                "--autoplay-policy=no-user-gesture-required", f"--user-data-dir={scratch}/profile",
                f"http://127.0.0.1:{server.server_port}/", stdout=output, stderr=subprocess.STDOUT)
        try:
            return reports.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"no report from the browser:\n{log.read_text()[-3000:]}") from None
        finally:
            browser.terminate()
            browser.wait(10)
    finally:
        server.shutdown()
        server.server_close()
