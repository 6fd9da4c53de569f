// A device: how busy its engines are, and its lanes over the last second, as a profiler shows them.

import {LiveText, arrange, el} from "./dom.js";
import {counted, fixed, percent} from "./format.js";
import {palette, rgb} from "./palette.js";
import {Pill} from "./parts.js";

const ENGINES = [
  ["h2d", "To device", "Frames are copied from memory to the device"],
  ["kernel", "Convert", "The conversion of colours and sizes"],
  ["d2h", "From device", "Frames are copied from the device to memory"],
];
const OVERLAP = "The sum of the engines' busy times over the time in which any was busy. 1.0: they take turns. " +
  "2.0: on average two work at once";
const USERS = "The feeds that use the busiest engine most: the share of the last ten seconds in which it " +
  "worked for each";
const FULL = 0.95;  // who needs such an engine waits for it
const PARTS = 100;  // of the second
const LANE_HEIGHT = 12;

export class DevicePanel {
  element;
  #pill = new Pill();
  #model = new LiveText();
  #overlap = new LiveText();
  #meters;
  #engines;
  #all = strip("All lanes together over the last second");
  #lanes = strip("Each lane over the last second");
  #labels = el("div", {class: "lane-labels"});
  #users = new LiveText();
  #more = el("p", {class: "quiet"});
  #moreText = new LiveText();
  #layout = "";
  #visible = true;
  #observer = new IntersectionObserver((entries) => (this.#visible = entries.at(-1).isIntersecting));

  constructor(device, engines) {
    this.#engines = ENGINES.filter(([key]) => engines.includes(key));
    this.#meters = this.#engines.map(([key, name, title]) => new Meter(key, name, title));
    this.#more.append(this.#moreText.node);
    this.element = el("section", {class: "panel device", "aria-label": `Device ${device}`},
      el("header", {}, el("h3", {}, device), el("span", {class: "source"}, this.#model.node),
        this.#pill.element),
      el("div", {class: "meters"}, ...this.#meters.map((meter) => meter.element),
        ...(this.#engines.length < 2 ? [] : [  // a CPU has one engine
          el("p", {class: "users", title: USERS}, this.#users.node),
          el("p", {class: "overlap", title: OVERLAP}, "Overlap ", el("strong", {}, this.#overlap.node))])),
      el("div", {class: "timeline"},
        el("div", {class: "lane-labels all"}, el("span", {}, "all lanes")), frame(this.#all)),
      el("div", {class: "timeline lanes", tabindex: "0", role: "region", "aria-label": `Lanes of ${device}`},
        this.#labels, frame(this.#lanes)),
      el("div", {class: "timeline axis", "aria-hidden": "true"}, el("span"),
        el("div", {}, el("span", {}, "1 s ago"), el("span", {}, "0.5 s"), el("span", {}, "now"))),
      this.#more);
    this.#observer.observe(this.element);
  }

  // `feeds`: those that use it.
  update(device, feeds) {
    this.#pill.set(device.up ? "ok" : "bad", device.up ? "Up" : "Lost");
    this.#model.set(device.name ?? "");
    this.#overlap.set(fixed(device.overlap, 2));
    for (const meter of this.#meters) meter.set(device.occupancy?.[meter.key]);
    this.#users.set(usersOf(device.occupancy, feeds));
    if (this.#visible) this.#draw(device.lanes ?? [], device.occupancy);
  }

  close() {
    this.#observer.disconnect();
  }

  #draw(lanes, occupancy) {
    this.#label(lanes);
    const keys = this.#engines.map(([key]) => key);
    const colours = keys.map((key) => rgb(palette()[key]));
    const sums = keys.map((key) => {
      const sum = new Uint16Array(PARTS);
      for (const lane of lanes) add(sum, lane[key]);
      return scaled(sum, occupancy?.[key] ?? 0);
    });
    // Pixel rows; the style sheet stretches them. A lane's rows end with an empty one.
    paint(this.#all, keys.map((_, at) => [sums[at], colours[at]]));
    const rows = [];
    for (const lane of lanes) {
      // The CPU has one engine, which gets the height of three.
      for (let at = 0; at < 3; ++at) {
        const engine = Math.min(at, keys.length - 1);
        rows.push([shares(lane[keys[engine]]), colours[engine]]);
      }
      rows.push(null);
    }
    paint(this.#lanes, rows);
  }

  // A label stands beside all lanes of its feed.
  #label(lanes) {
    const layout = lanes.map(({feed, lane}) => `${feed} ${lane}`).join("\n");
    if (layout === this.#layout) return;
    this.#layout = layout;
    const feeds = new Map();
    for (const {feed} of lanes) feeds.set(feed, (feeds.get(feed) ?? 0) + 1);
    arrange(this.#labels, [...feeds].map(([feed, number]) => {
      const label = el("span", {title: feed}, feed);
      label.style.height = `${number * LANE_HEIGHT}px`;
      return label;
    }));
    this.#lanes.style.height = `${lanes.length * LANE_HEIGHT}px`;
    this.#moreText.set(`${counted(lanes.length, "lane")} of ${counted(feeds.size, "feed")}`);
  }
}

// An engine's share of the time, as a figure and a bar.
class Meter {
  element;
  #text = new LiveText();
  #value = el("strong", {}, this.#text.node);
  #size = "";
  #bar = el("span", {class: "track", "aria-hidden": "true"});

  constructor(key, name, title) {
    this.key = key;
    this.element = el("div", {class: "meter", title, "data-engine": key},
      el("span", {class: "meter-name"}, name, el("code", {}, key)), this.#value, this.#bar);
  }

  set(share) {
    this.#text.set(percent(share));
    this.#value.classList.toggle("full", (share ?? 0) >= FULL);
    // A background is only painted; a width would be laid out, a transform composited.
    const size = `${(100 * Math.min(1, share ?? 0)).toFixed(1)}% 100%`;
    if (size === this.#size) return;
    this.#size = size;
    this.#bar.style.backgroundSize = size;
  }
}

// Who uses the busiest engine, and how much of it: "h2d: gate 33 %, yard 2 %".
function usersOf(occupancy, feeds) {
  const [engine] = Object.entries(occupancy ?? {}).reduce((a, b) => (b[1] > a[1] ? b : a), ["h2d", 0]);
  const users = feeds.filter((feed) => feed.engines?.[engine] >= 0.005)
    .sort((a, b) => b.engines[engine] - a.engines[engine]);
  if (users.length === 0) return `${engine}: no feed uses 1 %`;
  const shown = users.slice(0, 3).map((feed) => `${feed.name} ${percent(feed.engines[engine])}`);
  const others = users.length - shown.length;
  return `${engine}: ${shown.join(", ")}${others > 0 ? `, ${others} more` : ""}`;
}

function strip(label) {
  const canvas = el("canvas", {role: "img", "aria-label": label});
  canvas.width = PARTS;
  canvas.height = 1;
  return canvas;
}
const frame = (canvas) => el("div", {class: "strip"}, canvas);

// The hex digit at each part: 0 to 15.
const digit = (code) => (code > 96 ? code - 87 : code - 48);

function add(sum, text) {
  const length = Math.min(PARTS, text?.length ?? 0);
  for (let at = 0; at < length; ++at) sum[at] += digit(text.charCodeAt(at));
}

// The lanes' shares are rounded, so their sum tells only when the engine worked: how much, its occupancy
// tells.
function scaled(sum, occupancy) {
  const mean = sum.reduce((all, value) => all + value, 0) / PARTS;
  return mean === 0 ? sum : sum.map((value) => (value / mean) * occupancy * 15);
}

function shares(text) {
  const values = new Uint16Array(PARTS);
  add(values, text);
  return values;
}

// One pixel for each part; the busier, the less transparent. `rows`: [values of 0 to 15, colour] or
// null for an empty row. The image is kept and cleared, because a new one each second is garbage.
function paint(canvas, rows) {
  const height = Math.max(1, rows.length);
  if (canvas.height !== height) canvas.height = height;
  const context = canvas.getContext("2d");
  if (canvas.image?.height !== height) canvas.image = context.createImageData(PARTS, height);
  const pixels = new Uint32Array(canvas.image.data.buffer);
  pixels.fill(0);
  rows.forEach((row, at) => {
    if (!row) return;
    const [values, [red, green, blue]] = row;
    const colour = (blue << 16) | (green << 8) | red;
    for (let part = 0; part < PARTS; ++part) {
      const share = Math.min(15, values[part]);
      // Little-endian, as on every processor that browsers run on. The smallest share is still seen.
      if (share > 0) pixels[at * PARTS + part] = (((105 + share * 10) << 24) | colour) >>> 0;
    }
  });
  context.putImageData(canvas.image, 0, 0);
}
