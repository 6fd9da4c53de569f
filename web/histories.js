// The last ten minutes of every feed, in steps of a few seconds, for the small curves.

import {lostBy} from "./feed_state.js";

const SERIES = ["fps_in", "fps_out", "dropped", "bits"];
const SPAN_SECONDS = 600;

export class Histories {
  interval = 5;
  // Grows whenever there are new points, so that curves are drawn only then.
  version = 0;
  #feeds = new Map();
  #lost = new Map();
  #nextPoint = 0;

  // What the daemon remembers; it comes once at the start of each connection. The daemon may be another one, whose
  // uptime has begun anew.
  load({interval, feeds}) {
    this.interval = interval;
    this.#feeds = new Map(Object.entries(feeds));
    this.#lost.clear();
    this.#nextPoint = 0;
    ++this.version;
  }

  // Adds a point for each feed, every `interval` seconds of uptime: the server's clock may be set back.
  add({uptime, feeds}) {
    if (uptime < this.#nextPoint - 0.5) return;
    const first = this.#nextPoint === 0;
    this.#nextPoint = uptime + this.interval;
    for (const feed of feeds) {
      const lost = lostBy(feed);
      const dropped = Math.max(0, lost - (this.#lost.get(feed.name) ?? lost));
      this.#lost.set(feed.name, lost);
      if (!first) this.#append(feed, dropped);
    }
    if (first) return;
    ++this.version;
  }

  #append(feed, dropped) {
    const series = this.of(feed.name);
    const point = {fps_in: feed.fps_in, fps_out: feed.fps_out, dropped, bits: feed.bits_in};
    for (const name of SERIES) {
      series[name].push(point[name] ?? null);
      if (series[name].length > this.points) series[name].shift();
    }
    this.#feeds.set(feed.name, series);
  }

  get points() {
    return Math.round(SPAN_SECONDS / this.interval);
  }

  of(name) {
    const empty = () => Object.fromEntries(SERIES.map((series) => [series, []]));
    return this.#feeds.get(name) ?? empty();
  }
}
