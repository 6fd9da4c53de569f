// The event stream. When it breaks, or is silent, it is opened again: at first after a second, later
// after up to half a minute.

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30000;
// The daemon sends a status once a second.
const SILENCE_MS = 6000;

// `on` has a function for each event: history, status, incident (with the parsed data), and
// opened(): incidents are told from here on, live(): a status came, and lost({lastNews, retryAt}), times in
// milliseconds since 1970, lastNews null if none came.
export function connect(url, on) {
  let source = null;
  let wait = FIRST_WAIT_MS;
  let lastNews = null;
  let retry = 0;
  let silence = 0;

  function open() {
    clearTimeout(retry);
    source?.close();
    source = new EventSource(url);
    for (const name of ["history", "status", "incident"]) {
      source.addEventListener(name, (event) => {
        lastNews = Date.now();
        if (name === "status") {
          wait = FIRST_WAIT_MS;
          on.live();
        }
        expectNews();
        on[name](JSON.parse(event.data));
      });
    }
    source.onopen = on.opened;
    source.onerror = fail;
    expectNews();
  }

  function expectNews() {
    clearTimeout(silence);
    silence = setTimeout(fail, SILENCE_MS);
  }

  function fail() {
    clearTimeout(silence);
    clearTimeout(retry);
    source.close();
    on.lost({lastNews, retryAt: Date.now() + wait});
    retry = setTimeout(open, wait);
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
  }

  const again = () => {
    if (source.readyState === EventSource.CLOSED) open();
  };
  window.addEventListener("online", again);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") again();
  });
  open();
}
