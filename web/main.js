// Starts the page: one event stream, one view at a time, one pass over it per animation frame.

import {connect} from "./connection.js";
import {LiveText, setAttribute} from "./dom.js";
import {FeedPage} from "./feed_page.js";
import {judge, summary} from "./feed_state.js";
import {clock, duration} from "./format.js";
import {Histories} from "./histories.js";
import {Incidents} from "./incidents.js";
import {Overview} from "./overview.js";

// The server's clock: the viewer's may be wrong.
let clockOffset = 0;
const now = () => Date.now() + clockOffset;

const model = {histories: new Histories(), incidents: new Incidents(now), redraw: request};
const find = (id) => document.getElementById(id);
const texts = Object.fromEntries(["host", "version", "connection"].map((id) => {
  const text = new LiveText();
  find(id).append(text.node);
  return [id, text];
}));
let status = null;
let judged = [];
let lost = null;
let view = null;
let due = false;
const levels = new Map();

function request() {
  if (due) return;
  due = true;
  requestAnimationFrame(render);
}

function render() {
  due = false;
  showConnection();
  if (status) {
    const uptime = duration(status.uptime);
    texts.host.set(status.host ?? "");
    texts.version.set(`framelane ${status.version}, up for ${uptime}`);
    view.update(status, judged, now());
    announce(status.feeds);
  }
}

function showConnection() {
  setAttribute(document.body, "data-lost", lost ? "" : null);
  if (!lost) {
    texts.connection.set(status ? "Live" : "Connecting …");
    return;
  }
  const news = lost.lastNews ? `The last news is from ${clock(lost.lastNews)}.` : "There was no news yet.";
  texts.connection.set(`The connection is lost. ${news} It is tried again.`);
}

// Tells screen readers which feeds have changed for better or worse, and nothing else.
function announce(feeds) {
  const changes = [];
  feeds.forEach(({name}, at) => {
    const {level, word, reason} = judged[at];
    if (levels.has(name) && levels.get(name) !== level) {
      changes.push(`${name}: ${word}${reason ? `, ${reason}` : ""}`);
    }
    levels.set(name, level);
  });
  if (changes.length === 0) return;
  find("announcements").textContent =
    changes.length > 3 ? `${changes.length} feeds have changed their state.` : `${changes.join(". ")}.`;
}

// #/feeds/NAME is a feed's page, everything else the overview.
function route() {
  const name = location.hash.match(/^#\/feeds\/(.+)$/)?.[1];
  const first = view === null;
  view?.close();
  view = name === undefined ? new Overview(model) : new FeedPage(decode(name), model);
  find("view").replaceChildren(view.element);
  document.body.dataset.view = name === undefined ? "overview" : "feed";
  if (!first) {
    window.scrollTo(0, 0);
    view.title.focus({preventScroll: true});
  }
  request();
}

function decode(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

// A hidden page draws nothing, but its title goes on to tell.
function showTitle() {
  const {headline, delivered} = summary(status.feeds, judged);
  const title = status.feeds.length ? `${delivered}/${status.feeds.length} · ${status.host ?? "framelane"}` : headline;
  if (document.title !== title) document.title = title;
}

window.addEventListener("hashchange", route);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", request);
for (const link of document.querySelectorAll("[data-jump]")) {
  link.addEventListener("click", () => {
    const target = find(link.dataset.jump);
    target?.scrollIntoView();
    target?.focus?.();
  });
}

// What was before the stream was opened: it does not tell that again. What comes from then on, it tells, so
// that nothing is missed between the two. The question needs the server's time, which the first status has.
let unknown = false;
function loadIncidents() {
  unknown = false;
  model.incidents.load().then(request, () => (unknown = true));
}

route();
connect("/api/v1/events", {
  opened: () => (unknown = true),
  history: (data) => {
    model.histories.load(data);
    request();
  },
  status: (data) => {
    status = data;
    const open = model.incidents.open();
    judged = status.feeds.map((feed) => judge(feed, open.get(feed.name)));
    clockOffset = Date.parse(data.time) - Date.now();
    model.histories.add(data);
    showTitle();
    if (unknown) loadIncidents();
    request();
  },
  incident: (data) => {
    model.incidents.add(data);
    request();
  },
  live: () => (lost = null),
  lost: (how) => {
    lost = how;
    request();
  },
});
