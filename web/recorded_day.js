// What an output has recorded of a day, and what happened in it, drawn over its hours.

import {el, setAttribute, svg} from "./dom.js";
import {clock, duration, minute} from "./format.js";

export const MINUTE = 60e3;
const SEVERITIES = ["info", "warning", "error"];
// Pictures have a unit for each minute of a day. They are stretched to their place.
const WIDTH = 1440;
const HEIGHT = 24;
// Files that follow each other so closely are one bar. What is missing the daemon says.
const SAME_BAR = 3000;

const picture = (...children) =>
  svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true"}, ...children);
const row = (name, content) => el("div", {class: "timeline"},
  el("div", {class: "lane-labels"}, el("span", {title: name}, name)), content);
const unit = (time, {from, to}) =>
  Math.round(100 * WIDTH * Math.max(0, Math.min(1, (time - from) / (to - from)))) / 100;
const exactly = (seconds) => (seconds < 60 ? `${seconds.toFixed(1)} s` : duration(seconds));

// Incidents over the day, {from, to}; until: when they end.
export class Marks {
  #paths = SEVERITIES.map((severity) => svg("path", {"data-severity": severity}));
  place = el("div", {class: "marks"}, picture(...this.#paths));
  element = row("incidents", this.place);

  draw(incidents, day) {
    SEVERITIES.forEach((severity, at) => {
      const mine = incidents.filter((one) => one.severity === severity && one.until >= day.from);
      setAttribute(this.#paths[at], "d", mine.map(({from, until}) =>
        `M${unit(from, day)} ${HEIGHT / 2}H${unit(until, day)}`).join(""));
    });
  }
}

// The recordings of an output, and a cursor upon them.
export class RecordedDay {
  name;
  summary = "";
  #day = {from: 0, to: 1};
  #files = [];
  #gaps = [];
  #recorded = svg("path", {class: "recorded"});
  #missing = svg("path", {class: "missing"});
  #cursor = svg("path", {class: "cursor"});
  #slider;
  element;

  constructor(name) {
    this.name = name;
    this.#slider = el("div", {class: "day", role: "slider", tabindex: "0", "aria-label": `Minute of ${name}, Enter plays it`},
      picture(this.#recorded, this.#missing, this.#cursor));
    this.element = row(name, this.#slider);
  }

  // As the daemon lists them.
  take(files, gaps, day) {
    this.#day = day;
    // A file that is being written may have no end.
    const times = (one) => ({...one, begin: Date.parse(one.begin), end: one.end ? Date.parse(one.end) : day.to});
    this.#files = files.map(times).sort((a, b) => a.begin - b.begin);
    this.#gaps = gaps.map(times);
    const bars = [];
    for (const {begin, end} of this.#files) {
      const last = bars.at(-1);
      if (last && begin - last.end < SAME_BAR) last.end = Math.max(last.end, end);
      else bars.push({begin, end});
    }
    const path = (spans) => spans.map(({begin, end}) => `M${unit(begin, day)} 0V${HEIGHT}H${unit(end, day)}V0Z`).join("");
    setAttribute(this.#recorded, "d", path(bars));
    setAttribute(this.#missing, "d", path(this.#gaps));
    const longest = exactly(Math.max(...this.#gaps.map(({seconds}) => seconds)));
    const number = this.#gaps.length;
    const missing = number === 0 ? "no gap" : number === 1 ? `a gap of ${longest}` : `${number} gaps, the longest ${longest}`;
    this.summary = `${duration(covered(this.#files, day.from, day.to) / 1000)} recorded, ${missing}`;
  }

  // {files, gaps, seconds, text}: what there is of a minute.
  minute(at) {
    const inside = ({begin, end}) => begin < at + MINUTE && end > at;
    const [files, gaps] = [this.#files.filter(inside), this.#gaps.filter(inside)];
    const [from, to] = [Math.max(at, this.#day.from), Math.min(at + MINUTE, this.#day.to)];
    const recorded = covered(files, from, to);
    const text = to - from - recorded < 1000 ? "recorded"
      : recorded > 0 ? `${Math.ceil(recorded / 1000)} s of it recorded` : "nothing recorded";
    return {files, gaps, seconds: recorded / 1000, text: [text, ...gaps.map(({begin, end, seconds}) =>
      `a gap of ${exactly(seconds)} from ${clock(begin)} to ${clock(end)}`)].join(", ")};
  }

  // Shows the cursor at a minute between these two.
  point(at, first, last, active, text) {
    setAttribute(this.#cursor, "d", `M${unit(at + MINUTE / 2, this.#day)} -3V${HEIGHT + 3}`);
    const slider = {
      "data-active": active ? "" : null, "aria-valuemin": "0", "aria-valuemax": String((last - first) / MINUTE),
      "aria-valuenow": String((at - first) / MINUTE), "aria-valuetext": `${minute(at)}, ${text}`,
    };
    for (const [name, value] of Object.entries(slider)) setAttribute(this.#slider, name, value);
  }
}

// The milliseconds between two times that are in files, which are sorted and may overlap.
function covered(files, from, to) {
  let sum = 0;
  for (const {begin, end} of files) {
    sum += Math.max(0, Math.min(end, to) - Math.max(begin, from));
    from = Math.max(from, Math.min(end, to));
  }
  return sum;
}
