// What happened: one line for each cause. Those that last come first, then the newest.

import {LiveText, arrange, el} from "./dom.js";
import {clock, counted, duration, words} from "./format.js";
import {Pill} from "./parts.js";

const LEVELS = {info: "idle", warning: "warn", error: "bad"};
const FIRST_SHOWN = 30;
const KEPT = 1000;

// All that are known. Views show parts of it.
export class Incidents {
  version = 0;
  #byId = new Map();  // id -> {incident, turn}
  // What is told is newer than the answer to a question asked before: this counts both.
  #turn = 0;
  #answered = 0;  // the latest question that has an answer
  #all = false;
  #now;

  // `now` gives the server's time.
  constructor(now) {
    this.#now = now;
  }

  // Fetches those that last or ended in the last day; with `all`, and from then on, every one that is kept. Throws
  // if there is no answer.
  async load(all = false) {
    this.#all ||= all;
    const turn = ++this.#turn;
    const since = this.#all ? 0 : Math.floor(this.#now() / 1000) - 86400;
    // Without the cache, in which a question waits for an equal one.
    const response = await fetch(`/api/v1/incidents?since=${since}`, {cache: "no-store"});
    if (!response.ok) throw new Error(`status ${response.status}`);
    this.#take((await response.json()).incidents, turn);
  }

  // What was known before the question and is not in the answer has ended long ago, or the daemon has begun anew and
  // forgotten it. An answer is too late when a later question has one.
  #take(incidents, turn) {
    if (turn < this.#answered) return;
    this.#answered = turn;
    for (const incident of incidents) this.#set(incident, turn);
    for (const [id, known] of this.#byId) if (known.turn < turn) this.#byId.delete(id);
    this.#makeRoom();
    ++this.version;
  }

  // One that has begun, changed or ended.
  add(incident) {
    this.#set(incident, ++this.#turn);
    this.#makeRoom();
    ++this.version;
  }

  #set(incident, turn) {
    if (this.#byId.get(incident.id)?.turn > turn) return;
    this.#byId.set(incident.id, {incident, turn});
  }

  // As the daemon does: the oldest that is over goes, unless it is the newest; then the oldest.
  #makeRoom() {
    while (this.#byId.size > KEPT) {
      const ids = [...this.#byId.keys()].sort((a, b) => a - b);
      const over = ids.slice(0, -1).find((id) => this.#byId.get(id).incident.end !== null);
      this.#byId.delete(over ?? ids[0]);
    }
  }

  // Those that last, by their feed.
  open() {
    const byFeed = new Map();
    for (const {incident} of this.#byId.values()) {
      if (incident.end !== null || !incident.feed) continue;
      byFeed.set(incident.feed, [...(byFeed.get(incident.feed) ?? []), incident]);
    }
    return byFeed;
  }

  // Those that last first, then the newest; `feed`: null for all.
  list(feed = null) {
    const all = [...this.#byId.values()].map(({incident}) => incident);
    const mine = all.filter((i) => feed === null || i.feed === feed);
    return mine.sort((a, b) => (a.end === null) === (b.end === null)
      ? Date.parse(b.begin) - Date.parse(a.begin) || b.id - a.id
      : a.end === null ? -1 : 1);
  }
}

export class IncidentList {
  element = el("div", {class: "incidents"});
  #list = el("ol");
  #none = el("p", {class: "quiet"}, "Nothing has happened in the last 24 hours.");
  #more = el("button", {type: "button", click: () => this.#showAll()}, "Show older");
  #rows = new Map();
  #incidents;
  #feed;
  #shown = FIRST_SHOWN;
  #day = 0;  // what is over has its day beside it when that has passed
  #version = -1;

  constructor(incidents, feed = null) {
    this.#incidents = incidents;
    this.#feed = feed;
    this.element.append(this.#none, this.#list, this.#more);
  }

  update(now) {
    const day = new Date(now).getDate();
    for (const row of this.#rows.values()) if (row.lasts || day !== this.#day) row.tick(now);
    this.#day = day;
    if (this.#version === this.#incidents.version) return;
    this.#version = this.#incidents.version;
    const all = this.#incidents.list(this.#feed);
    const shown = all.slice(0, this.#shown);
    const keep = new Set(shown.map((incident) => incident.id));
    for (const id of this.#rows.keys()) if (!keep.has(id)) this.#rows.delete(id);
    arrange(this.#list, shown.map((incident) => this.#row(incident, now).element));
    this.#none.hidden = shown.length > 0 || this.#version === 0;  // 0: there was no answer yet
    this.#list.hidden = shown.length === 0;
  }

  #row(incident, now) {
    if (!this.#rows.has(incident.id)) this.#rows.set(incident.id, new Row(this.#feed === null));
    const row = this.#rows.get(incident.id);
    row.set(incident, now);
    return row;
  }

  async #showAll() {
    try {
      await this.#incidents.load(true);
    } catch {
      return;  // the button stays
    }
    this.#shown = Infinity;
    this.#more.hidden = true;
    this.#none.textContent = "No incidents are kept.";
    this.#version = -1;
  }
}

class Row {
  #pill = new Pill();
  #text = new LiveText();
  #when = new LiveText();
  #cause = new LiveText();
  #causeElement = el("p", {class: "cause"}, this.#cause.node);
  #subject = el("strong");
  #incident = null;
  element = el("li", {},
    el("div", {class: "incident-head"}, this.#pill.element, el("time", {}, this.#when.node)),
    el("p", {}, this.#subject, " ", this.#text.node), this.#causeElement);

  constructor(withFeed) {
    this.withFeed = withFeed;
  }

  set(incident, now) {
    if (this.#incident === incident) return;
    this.#incident = incident;
    this.#pill.set(LEVELS[incident.severity] ?? "idle", words(incident.kind));
    this.#subject.replaceChildren(...this.#subjects(incident));
    this.#text.set(incident.text);
    const gap = incident.gap_seconds > 0 ? `gap of ${duration(incident.gap_seconds)}` : "";
    const tries = incident.retries > 0 ? counted(incident.retries, "retry", "retries") : "";
    const extra = [tries, gap].filter((part) => part && !incident.text.includes(part));
    const cause = incident.reason && !incident.text.includes(incident.reason) ? [incident.reason] : [];
    this.#cause.set([...extra, ...cause].join(" · "));
    this.#causeElement.hidden = extra.length + cause.length === 0;
    this.element.title = incident.end ? `${incident.begin} to ${incident.end}` : `since ${incident.begin}`;
    this.element.toggleAttribute("data-lasts", incident.end === null);
    this.tick(now);
  }

  get lasts() {
    return this.#incident.end === null;
  }

  // What lasts shows for how long.
  tick(now) {
    const {begin, end} = this.#incident;
    if (end === null) {
      const age = duration((now - Date.parse(begin)) / 1000);
      this.#when.set(`since ${clock(begin)}, for ${age}`);
    } else {
      const same = Date.parse(end) - Date.parse(begin) < 1000;
      this.#when.set(same ? clock(begin) : `${clock(begin)} to ${clock(end)}`);
    }
  }

  #subjects({feed, encode, output, device}) {
    const parts = [];
    if (feed && this.withFeed) parts.push(el("a", {href: `#/feeds/${encodeURIComponent(feed)}`}, feed));
    const part = encode ? `encode ${encode}` : output ? `output ${output}` : "";
    if (part) parts.push(parts.length ? ` ${part}` : part);
    if (device && !feed) parts.push(device);
    return parts.length ? [...parts, ":"] : [];
  }
}
