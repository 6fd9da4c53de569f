// A feed's own page: #/feeds/NAME.

import {LiveText, arrange, el, setAttribute} from "./dom.js";
import {heldUpBy, lostBy, outputState} from "./feed_state.js";
import {
  bitRate, bytes, clock, count, duration, exact, fixed, frameRate, latency, lossesIn, lost, reasons, times, words,
} from "./format.js";
import {IncidentList} from "./incidents.js";
import {Facts, Pill, traceLinks} from "./parts.js";
import {Player, playerIsThere} from "./player.js";
import {Sparkline} from "./sparkline.js";
import {Table} from "./table.js";
import {Thumbnail} from "./thumbnails.js";

const PICTURE_WIDTH = 960;
// So long the page waits for the list of recordings, because it moves what is below.
const PATIENCE_MS = 500;
const OUTPUT_LEVELS = {running: "ok", ended: "idle", waiting: "idle", failed: "bad"};

export class FeedPage {
  element;
  title;
  #name;
  #path;
  #pill = new Pill();
  #note = new LiveText();
  #noteElement = el("p", {class: "note"}, this.#note.node);
  #body = el("div", {class: "feed-body"});
  #missing = el("p", {class: "quiet", hidden: true}, "No feed has this name now.");
  #picture = el("div", {class: "picture"});
  #answer = el("p", {class: "answer", role: "status"});
  #facts = new Facts([
    ["fps_in", "Frames in", "Frames per second from the source"],
    ["fps_out", "Frames out", "Frames per second that were encoded"],
    ["latency", "Latency, half / 99 of 100", "From a decoded frame to its packet, over the last minute"],
    ["bits", "Bit rate of the source"],
    ["bottleneck", "Bottleneck", "The step that sets the pace"],
    ["size", "Size"],
    ["decoder", "Decoder"],
    ["device", "Device"],
    ["reconnects", "Reconnects"],
    ["restarts", "Restarts after errors"],
    ["dropped", "Frames dropped"],
    ["luma", "Mean brightness", "0 to 255, with analyse: true"],
  ], "facts wide");
  #charts = [
    ["Frames per second, out (in: faint)", ({fps_out, fps_in}) => ({main: fps_out, faint: fps_in}),
      ({fps_out}) => span(fps_out, frameRate)],
    ["Bit rate of the source", ({bits}) => ({main: bits}), ({bits}) => span(bits, bitRate)],
    ["Frames dropped", ({dropped}) => ({bars: dropped}),
      ({dropped}) => count(dropped.reduce((sum, n) => sum + (n ?? 0), 0))],
  ].map(([name, of, caption]) =>
    ({name, of, caption, text: new LiveText(), curve: new Sparkline(`${name}, over ten minutes`, "chart")}));
  #encodes = new Table("Encodes", [
    ["name", "Encode"], ["codec", "Codec"], ["size", "Size"], ["fps", "Frames/s", "number"], ["in", "In", "number"],
    ["out", "Out", "number"], ["left", "Left out (rate)", "number"], ["dropped", "Dropped", "number"],
    ["flight", "In flight", "number"],
    ["why", "Dropped why, and what is wrong"],
  ]);
  #outputs = new Table("Outputs", [
    ["name", "Output"], ["state", "State"], ["from", "From"], ["bits", "Bit rate", "number"],
    ["bytes", "Written", "number"], ["queue", "Queue", "number"], ["lost", "Packets lost", "number"],
    ["reconnects", "Reconnects", "number"], ["reason", "What is wrong"], ["play", ""],
  ]);
  #histories;
  #list;
  #thumbnail;
  #player = null;
  #plays = false;
  #recordings = null;
  #whole = false;  // whether nothing is missing that would move the rest
  #configuration = el("pre", {tabindex: "0"});

  constructor(name, {histories, incidents, redraw}) {
    this.#name = name;
    this.#path = `/api/v1/feeds/${encodeURIComponent(name)}`;
    this.#histories = histories;
    this.#list = new IncidentList(incidents, name);
    this.#thumbnail = new Thumbnail(this.#picture, name, PICTURE_WIDTH);
    this.title = el("h1", {tabindex: "-1"}, name);
    this.element = el("main", {class: "feed"},
      el("nav", {"aria-label": "Back"}, el("a", {href: "#/"}, "← All feeds")),
      el("div", {class: "feed-title"}, this.title, this.#pill.element, this.#restartButton()),
      this.#noteElement, this.#answer, this.#missing, this.#body);
    this.#body.append(
      el("div", {class: "feed-top"}, this.#picture, el("div", {class: "stack"},
        el("section", {class: "panel", "aria-label": "Figures"}, this.#facts.element),
        el("section", {class: "panel"}, el("h2", {}, "Flight recorder"), traceLinks(name)))),
      el("div", {class: "charts"}, ...this.#charts.map(({name: title, curve, text}) =>
        el("figure", {class: "panel"},
          el("figcaption", {}, el("span", {}, title), el("span", {}, text.node)), curve.element))),
      this.#encodes.element, this.#outputs.element,
      el("section", {class: "panel"}, el("h2", {}, "Incidents"), this.#list.element),
      this.#configurationPart());
    playerIsThere().then((there) => (this.#plays = there));
    this.#addRecordings(incidents, redraw);
  }

  async #addRecordings(incidents, redraw) {
    const answered = () => {
      if (!this.#whole) redraw();
      this.#whole = true;
    };
    setTimeout(answered, PATIENCE_MS);
    const loaded = await import("./recordings.js").catch(() => null);
    if (!loaded) return answered();
    const play = (address, label, onEnd) => this.#open(label, onEnd).playFile(address);
    this.#recordings = new loaded.Recordings(this.#name, this.#path, incidents, play, answered);
    this.#body.querySelector(".feed-top").after(this.#recordings.element);
    redraw();
  }

  update(status, judged, now) {
    const at = status.feeds.findIndex(({name}) => name === this.#name);
    this.#missing.hidden = at >= 0;
    this.#body.hidden = at < 0 || !this.#whole;
    this.#pill.element.hidden = at < 0;
    if (at < 0) return;
    this.#recordings?.update(now);
    const feed = status.feeds[at];
    const {level, word, reason, since: from} = judged[at];
    this.#pill.set(level, word);
    setAttribute(this.element, "data-level", level);
    const since = `since ${clock(from)}, for ${duration((now - Date.parse(from)) / 1000)}`;
    this.#note.set(reason ? `${reason} (${since})` : since);
    this.#thumbnail.wanted = feed.up && this.#player === null;
    this.#thumbnail.show();
    this.#showFacts(feed, judged[at]);
    const history = this.#histories.of(this.#name);
    for (const {of, caption, text, curve} of this.#charts) {
      text.set(caption(history));
      curve.draw(of(history), this.#histories.points, this.#histories.version);
    }
    this.#encodes.update(feed.encodes.map((encode) => [encode.name, encodeCells(encode)]));
    this.#outputs.update(feed.outputs.map((output) => [output.name, this.#outputCells(feed, output)]));
    this.#list.update(now);
  }

  close() {
    this.#thumbnail.close();
    this.#player?.close();
  }

  #showFacts(feed, {loses}) {
    const set = (key, text, level) => this.#facts.set(key, text, level);
    set("fps_in", frameRate(feed.fps_in));
    set("fps_out", frameRate(feed.fps_out));
    set("latency", latency(feed.latency));
    set("bits", bitRate(feed.bits_in));
    set("bottleneck", words(feed.bottleneck), heldUpBy(feed) ? "warn" : null);
    set("size", times(feed.size) || "–");
    set("decoder", feed.decoder || "–");
    set("device", feed.device || "–");
    set("reconnects", count(feed.reconnects));
    set("restarts", count(feed.restarts));
    set("dropped", count(lostBy(feed)), loses ? "warn" : null);
    set("luma", fixed(feed.luma, 1));
  }

  #outputCells(feed, output) {
    const state = outputState(feed, output);
    const level = OUTPUT_LEVELS[state] ?? "warn";
    return {
      name: output.name,
      state: {pill: [level, words(state)]},
      from: (output.from ?? []).join(", "),
      bits: bitRate(output.bits),
      bytes: bytes(output.bytes),
      queue: count(output.queue),
      lost: exact(output.packets_lost),
      reconnects: count(output.reconnects),
      reason: output.reason ?? "",
      play: this.#plays && output.playlist ? {button: ["Play", () => this.#play(output)]} : "",
    };
  }

  #play({name, playlist}) {
    const address = `${this.#path}/hls/${playlist.split("/").map(encodeURIComponent).join("/")}`;
    this.#open(`Output ${name} of ${this.#name}`).playList(address);
  }

  // The player over the picture; the one that is open if it has this label.
  #open(label, onEnd = () => {}) {
    if (this.#player?.label === label) return this.#player;
    this.#player?.close();
    const onClose = () => {
      this.#player = null;
      arrange(this.#picture, [...this.#picture.querySelectorAll("img")]);
    };
    this.#player = new Player(label, onClose, onEnd);
    this.#picture.append(this.#player.element);
    this.#player.element.scrollIntoView({block: "nearest"});
    return this.#player;
  }

  #restartButton() {
    return el("button", {type: "button", click: async () => {
      if (!confirm(`Restart ${this.#name}? Its outputs are interrupted for a moment.`)) return;
      this.#answer.textContent = "Asked for a restart …";
      this.#answer.textContent = await this.#restart();
    }}, "Restart");
  }

  async #restart() {
    try {
      const response = await fetch(`${this.#path}/restart`, {method: "POST", headers: {"X-Framelane-Request": "1"}});
      if (response.ok) return "The feed restarts.";
      if (response.status === 401 || response.status === 403) {
        return "Not restarted: this needs a token with the controlling role.";
      }
      return `Not restarted: ${(await response.json()).error.message}`;
    } catch {
      return "Not restarted: the daemon did not answer.";
    }
  }

  // Fetched when it is opened.
  #configurationPart() {
    return el("details", {class: "panel", toggle: async (event) => {
      if (!event.target.open) return;
      try {
        const response = await fetch(`${this.#path}/config`);
        const answer = await response.json();
        this.#configuration.textContent =
          response.ok ? JSON.stringify(answer, null, 2) : answer.error.message;
      } catch {
        this.#configuration.textContent = "The configuration could not be fetched.";
      }
    }}, el("summary", {}, el("h2", {}, "Configuration")),
    el("p", {class: "quiet"}, "As it is in force, with secrets hidden."), this.#configuration);
  }
}

// The least and the most of ten minutes.
function span(values, format) {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return "";
  return `${format(Math.min(...known))} to ${format(Math.max(...known))}`;
}

function encodeCells(encode) {
  const dropped = lost(encode.dropped);
  return {
    name: encode.name,
    codec: encode.codec ?? "–",
    size: times(encode.size),
    fps: frameRate(encode.fps_out),
    in: exact(encode.in),
    out: exact(encode.out),
    left: encode.dropped?.rate ? exact(encode.dropped.rate) : "",
    dropped: exact(dropped),
    flight: exact(encode.in_flight),
    why: [encode.reason, reasons(lossesIn(encode.dropped))].filter(Boolean).join(" · "),
  };
}
