"""The status page in a headless Chromium, which Playwright drives (web_page.mjs)."""

import json
import pathlib
import shutil
import subprocess

from harness.daemon import ROOT

# As scripts/install-dependencies --test fetches them.
MODULES = ROOT / "build" / "tools" / "npm" / "node_modules"


class Browser:
    """A Chromium. It shows one page at a time; run() speaks to that page."""

    def __init__(self):
        driver = pathlib.Path(__file__).with_suffix(".mjs")
        self._process = subprocess.Popen(["node", driver, MODULES, shutil.which("chromium")], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def open(self, url, width=1280, height=900, scheme="light", **options):
        """Shows the page in a context of its own. `options`: as browser.newContext() takes them."""
        self.run("await open(url, options)", url=url, options={
            "viewport": {"width": width, "height": height}, "colorScheme": scheme, **options})

    def run(self, code, **arguments):
        """Runs the body of an async JavaScript function that has Playwright's `page` and the arguments, and returns
        what it returns. What Playwright throws, as when something waited for does not come in 60 s, is an error."""
        self._process.stdin.write(json.dumps({"code": code, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the browser has ended"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def check(self):
        """The page has caused no error and no violation of its policy, and asked nobody else for anything."""
        seen = self.run("return {...page.seen, violations: await page.evaluate(() => window.violations), "
                        "origin: new URL(page.url()).origin}")
        assert seen["problems"] == [] and seen["violations"] == []
        strangers = [url for url in seen["requests"] if not url.startswith((seen["origin"] + "/", "blob:"))]
        assert strangers == []

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
