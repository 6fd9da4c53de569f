// The overview: all feeds, those in trouble first; devices, the recorder, and what happened.

import {LiveText, arrange, el, setAttribute} from "./dom.js";
import {DevicePanel} from "./device_panel.js";
import {LEVELS, summary} from "./feed_state.js";
import {bytes, duration} from "./format.js";
import {IncidentList} from "./incidents.js";
import {traceLinks} from "./parts.js";
import {Tile} from "./tile.js";

// A feed that is well again stays this long where it is, so that one that comes and goes does not
// jump.
const CALM_MS = 10000;
const OK = LEVELS.indexOf("ok");

export class Overview {
  element;
  #headline = new LiveText();
  #detail = new LiveText();
  #title = el("h1", {tabindex: "-1", class: "headline"}, this.#headline.node);
  #troubled = new Group("Needs attention");
  #delivered = new Group("Delivered");
  #ended = new Group("Ended");
  #devices = el("div", {class: "stack"});
  #recorder = new LiveText();
  #recorderPart;
  #list;
  #filter = "";
  #tiles = new Map();
  #calmFrom = new Map();
  #panels = new Map();
  #histories;

  constructor({histories, incidents, redraw}) {
    this.#histories = histories;
    this.#list = new IncidentList(incidents);
    const search = el("input", {
      type: "search", placeholder: "Find a feed", "aria-label": "Find a feed by its name", autocomplete: "off",
      spellcheck: "false", input: () => {
        this.#filter = search.value.trim().toLowerCase();
        redraw();
      },
    });
    this.#recorderPart = el("section", {class: "panel recorder", "aria-labelledby": "recorder-title"},
      el("h2", {id: "recorder-title"}, "Flight recorder"), el("p", {}, this.#recorder.node), traceLinks());
    this.element = el("main", {class: "overview"},
      el("div", {class: "top"}, el("div", {}, this.#title, el("p", {class: "detail"}, this.#detail.node)), search),
      el("div", {class: "feeds"}, this.#troubled.element, this.#delivered.element, this.#ended.element),
      el("aside", {class: "side", "aria-label": "Devices and incidents"},
        el("section", {id: "devices", "aria-labelledby": "devices-title"},
          el("h2", {id: "devices-title"}, "Devices"), this.#devices),
        this.#recorderPart,
        el("section", {class: "panel", id: "incidents", "aria-labelledby": "incidents-title"},
          el("h2", {id: "incidents-title"}, "Incidents"), this.#list.element)));
  }

  get title() {
    return this.#title;
  }

  update(status, judged, now) {
    const {headline, detail, level} = summary(status.feeds, judged);
    this.#headline.set(headline);
    this.#detail.set(detail || "\u00a0");
    setAttribute(this.#title, "data-level", level);
    this.#updateTiles(status, judged, now);
    this.#updateDevices(status.devices ?? [], status.feeds);
    this.#recorderPart.hidden = !status.recorder;
    if (status.recorder) {
      const {seconds, bytes: size} = status.recorder;
      this.#recorder.set(`Remembers every frame of the last ${duration(seconds)}, in ${bytes(size)} of memory.`);
    }
    this.#list.update(now);
  }

  close() {
    for (const tile of this.#tiles.values()) tile.close();
    for (const panel of this.#panels.values()) panel.close();
  }

  #updateTiles({feeds}, judged, now) {
    const names = new Set(feeds.map((feed) => feed.name));
    for (const [name, tile] of this.#tiles) {
      if (names.has(name)) continue;
      tile.close();
      this.#tiles.delete(name);
    }
    const troubled = [];
    const delivered = [];
    const ended = [];
    feeds.forEach((feed, at) => {
      if (!this.#tiles.has(feed.name)) this.#tiles.set(feed.name, new Tile(feed.name));
      const tile = this.#tiles.get(feed.name);
      tile.update(feed, judged[at], now, this.#histories);
      tile.element.hidden = !feed.name.toLowerCase().includes(this.#filter);
      const rank = this.#rank(feed.name, judged[at].level);
      const group = rank < OK ? troubled : rank === OK ? delivered : ended;
      group.push({element: tile.element, rank, at});
    });
    const worstFirst = (a, b) => a.rank - b.rank || a.at - b.at;
    this.#troubled.set(troubled.sort(worstFirst).map((t) => t.element));
    this.#delivered.set(delivered.map((t) => t.element));
    this.#ended.set(ended.map((t) => t.element));
  }

  // A feed's place: that of its level, or of a worse one that it had until a moment ago.
  #rank(name, level) {
    const now = performance.now();  // the server's clock may be set back
    const rank = LEVELS.indexOf(level);
    const held = this.#calmFrom.get(name);
    if (rank < OK && !(held && held.rank < rank && now < held.until)) {
      this.#calmFrom.set(name, {rank, until: now + CALM_MS});
      return rank;
    }
    if (!held) return rank;
    if (now < held.until) return held.rank;
    this.#calmFrom.delete(name);
    return rank;
  }

  #updateDevices(devices, feeds) {
    const names = new Set(devices.map(({device}) => device));
    for (const [name, panel] of this.#panels) {
      if (names.has(name)) continue;
      panel.close();
      this.#panels.delete(name);
    }
    for (const device of devices) {
      if (!this.#panels.has(device.device)) {
        const engines = Object.keys(device.occupancy ?? {kernel: 0});
        this.#panels.set(device.device, new DevicePanel(device.device, engines));
      }
      this.#panels.get(device.device)
        .update(device, feeds.filter((feed) => feed.device === device.device));
    }
    arrange(this.#devices, devices.map(({device}) => this.#panels.get(device).element));
  }
}

// Tiles below a title with their number; without tiles it is not there.
class Group {
  #number = new LiveText();
  #grid = el("div", {class: "grid"});
  element;

  constructor(name) {
    this.element = el("section", {hidden: true},
      el("h2", {}, `${name} `, el("span", {class: "amount"}, this.#number.node)), this.#grid);
  }

  set(elements) {
    this.#number.set(String(elements.length));
    this.element.hidden = elements.length === 0;
    arrange(this.#grid, elements);
  }
}
