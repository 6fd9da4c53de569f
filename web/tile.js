// A feed's tile on the overview. Its size never changes.

import {LiveText, el, setAttribute} from "./dom.js";
import {heldUpBy, lossesOf, lostBy, outputState, sizes} from "./feed_state.js";
import {age, bitRate, count, frameRate, latency, words} from "./format.js";
import {Facts, Pill} from "./parts.js";
import {Sparkline} from "./sparkline.js";
import {Thumbnail} from "./thumbnails.js";

const THUMBNAIL_WIDTH = 320;

export class Tile {
  element;
  #pill = new Pill();
  #source = new LiveText();
  #age = new LiveText();
  #note = new LiveText();
  #noteElement = el("p", {class: "note"}, this.#note.node);
  #facts = new Facts([
    ["in", "In", "Frames per second from the source"],
    ["out", "Out", "Frames per second that were encoded"],
    ["latency", "Latency", "From a decoded frame to its packet, over the last minute: half of the frames " +
      "are faster than the first figure, 99 of 100 faster than the second"],
    ["bits", "Bit rate", "What comes from the source"],
    ["dropped", "Dropped", "Frames lost since the feed was added"],
    ["reconnects", "Reconnects", "How often the source was connected again"],
    ["bottleneck", "Bottleneck", "The step that sets the pace. With a live source that keeps up it is the source"],
    ["outputs", "Outputs", "Outputs that run, of all"],
  ]);
  #spark = new Sparkline("Frames per second and losses over ten minutes");
  #thumbnail;

  constructor(name) {
    const frame = el("div", {class: "thumbnail"});
    this.#thumbnail = new Thumbnail(frame, name, THUMBNAIL_WIDTH);
    this.element = el("article", {class: "tile"},
      el("div", {class: "tile-head"}, frame,
        el("div", {class: "tile-names"},
          el("h3", {}, el("a", {href: `#/feeds/${encodeURIComponent(name)}`, title: name}, name)),
          el("p", {class: "state"}, this.#pill.element, el("span", {class: "quiet"}, this.#age.node)),
          el("p", {class: "source"}, this.#source.node))),
      this.#facts.element, this.#noteElement, this.#spark.element);
  }

  update(feed, judged, now, histories) {
    setAttribute(this.element, "data-level", judged.level);
    this.#pill.set(judged.level, judged.word);
    this.#source.set([sizes(feed), feed.device, feed.decoder].filter(Boolean).join(" · "));
    this.#age.set(`for ${age((now - Date.parse(judged.since)) / 1000)}`);
    this.#facts.set("in", frameRate(feed.fps_in));
    this.#facts.set("out", frameRate(feed.fps_out));
    this.#facts.set("latency", latency(feed.latency));
    this.#facts.set("bits", bitRate(feed.bits_in));
    const lost = lostBy(feed);
    this.#facts.set("dropped", count(lost), judged.loses ? "warn" : null);
    this.#facts.set("reconnects", count(feed.reconnects));
    this.#facts.set("bottleneck", words(feed.bottleneck), heldUpBy(feed) ? "warn" : null);
    this.#facts.set("outputs", outputs(feed));
    const note = [judged.reason, lossesOf(feed)].filter(Boolean).join(" · ") || "Nothing dropped";
    this.#note.set(note);
    setAttribute(this.#noteElement, "title", note);
    this.#thumbnail.wanted = feed.up;
    this.#thumbnail.show();
    const {fps_in, fps_out, dropped: bars} = histories.of(feed.name);
    this.#spark.draw({main: fps_out, faint: fps_in, bars}, histories.points, histories.version);
  }

  close() {
    this.#thumbnail.close();
  }
}

function outputs(feed) {
  if (feed.outputs.length === 0) return "none";
  const states = feed.outputs.map((output) => outputState(feed, output));
  if (states.every((state) => state === "waiting")) return "waiting";
  return `${states.filter((state) => state === "running").length} of ${feed.outputs.length}`;
}
