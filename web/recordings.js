// A feed's recordings of the last day, with their gaps and the feed's incidents. Any minute of them can be
// played and downloaded. feed_page.js loads this file.

import {LiveText, arrange, el, setAttribute} from "./dom.js";
import {bytes, minute, words} from "./format.js";
import {MINUTE, Marks, RecordedDay} from "./recorded_day.js";

const DAY = 1440 * MINUTE;
const STEPS = {  // in minutes
  ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -60, PageUp: 60, Home: -1440, End: 1440,
};

export class Recordings {
  element;
  #name;
  #path;
  #incidents;
  #play;
  #answered;
  #due = 0;
  #version = -1;
  #events = [];  // the incidents, with `from` and `until`
  #day = {from: 0, to: DAY};
  #outputs = new Map();  // name -> RecordedDay
  #active = null;        // the output that is played
  #at = null;            // the minute of the cursor
  #played = null;        // that which was played last
  #marks = new Marks();
  #hours = el("div", {class: "hours"});
  #hover = new LiveText();
  #hoverElement = el("p", {class: "hover", "aria-hidden": "true", hidden: true}, this.#hover.node);
  #rows = el("div", {
    class: "days", click: (event) => this.#click(event), keydown: (event) => this.#key(event),
    focusin: ({target}) => this.#move(0, this.#outputOf(target)),
    pointermove: (event) => this.#point(event), pointerleave: () => (this.#hoverElement.hidden = true),
  });
  #parts = el("div");
  #choice = new Choice((step) => this.#move(step), () => this.#playMinute());
  #summary = new LiveText();

  // `path`: the feed's in the API. `play(address, label, onEnd)` shows a video. `answered` is called after each
  // answer, or failure, of the daemon.
  constructor(name, path, incidents, play, answered) {
    [this.#name, this.#path, this.#incidents, this.#play, this.#answered] = [name, path, incidents, play, answered];
    this.element = el("section", {class: "panel recordings", "aria-label": "Recordings", hidden: true},
      el("header", {}, el("h2", {}, "Recordings of the last 24 hours"),
        el("p", {class: "quiet"}, this.#summary.node)),
      this.#parts);
    this.#parts.append(
      this.#rows, el("div", {class: "timeline axis", "aria-hidden": "true"}, el("span"), this.#hours), this.#choice.element);
  }

  // Once a second. The list is asked for once a minute. `now` is the server's, whose clock may be set back.
  update(now) {
    if (performance.now() >= this.#due) this.#load(now);
    if (this.#active && this.#version !== this.#incidents.version) this.#draw();
  }

  async #load(now) {
    this.#due = performance.now() + MINUTE;
    const [from, to] = [now - DAY, now].map((time) => new Date(time).toISOString());
    try {
      const response = await fetch(`${this.#path}/recordings?from=${from}&to=${to}`);
      const answer = await response.json();
      if (response.ok) this.#take(answer);
      else this.#complain(answer.error.message);
    } catch {
      // What was known is still shown.
    }
    this.#answered();
  }

  // What was known is still shown, too.
  #complain(message) {
    this.#summary.set(`Not listed now: ${message}`);
    this.element.hidden = false;
    this.#parts.hidden = this.#active === null;
  }

  #take({from, to, outputs}) {
    this.#day = {from: Date.parse(from), to: Date.parse(to)};
    this.#outputs = new Map(outputs.map(({output, files, gaps}) => {
      const one = this.#outputs.get(output) ?? new RecordedDay(output);
      one.take(files, gaps, this.#day);
      return [output, one];
    }));
    const days = [...this.#outputs.values()];
    this.element.hidden = days.length === 0;
    if (!days.includes(this.#active)) this.#active = days[0] ?? null;
    this.#parts.hidden = this.#active === null;
    if (!this.#active) return;
    arrange(this.#rows, [this.#marks.element, ...days.map(({element}) => element), this.#hoverElement]);
    this.#showHours();
    this.#at ??= this.#last;
    this.#draw();
  }

  get #first() {
    return Math.floor(this.#day.from / MINUTE) * MINUTE;
  }
  get #last() {
    return Math.floor((this.#day.to - 1) / MINUTE) * MINUTE;
  }

  #move(step, output = null) {
    this.#at += step * MINUTE;
    this.#active = output ?? this.#active;
    this.#draw();
  }

  #outputOf(target) {
    return [...this.#outputs.values()].find(({element}) => element.contains(target));
  }

  #minuteAt({clientX}) {
    const {left, width} = this.#marks.place.getBoundingClientRect();
    const {from, to} = this.#day;
    return Math.floor((from + ((to - from) * (clientX - left)) / width) / MINUTE) * MINUTE;
  }

  #click(event) {
    if (!event.target.closest(".marks, .day")) return;
    this.#at = this.#minuteAt(event);
    this.#move(0, this.#outputOf(event.target));
    this.#playMinute();
  }

  #key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in STEPS) this.#move(STEPS[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.#playMinute();
    else return;
    event.preventDefault();
  }

  // Says the time at the pointer, beside it.
  #point(event) {
    this.#hoverElement.hidden = !event.target.closest(".marks, .day");
    if (this.#hoverElement.hidden) return;
    const at = this.#minuteAt(event);
    const kinds = this.#eventsOf(at).map(({kind}) => words(kind));
    this.#hover.set([minute(at), ...kinds.slice(0, 1)].join(", "));
    const {left, width} = this.#rows.getBoundingClientRect();
    const most = width - this.#hoverElement.offsetWidth;
    this.#hoverElement.style.left = `${Math.max(0, Math.min(most, event.clientX - left + 10))}px`;
  }

  #eventsOf(at) {
    return this.#events.filter(({from, until}) => from < at + MINUTE && until >= at);
  }

  // The minute at the cursor, and when it has ended the next one, unless the cursor has gone elsewhere.
  #playMinute() {
    if (this.#active.minute(this.#at).seconds === 0) return;
    this.#played = this.#at;
    this.#play(this.#address(), `Recording ${this.#active.name} of ${this.#name}`, () => {
      if (this.#at !== this.#played || this.#at === this.#last) return;
      this.#move(1);
      this.#playMinute();
    });
  }

  // Of the minute as one file.
  #address() {
    const [from, to] = [this.#at, this.#at + MINUTE].map((time) => new Date(time).toISOString());
    return `${this.#path}/recordings/${encodeURIComponent(this.#active.name)}.mp4?from=${from}&to=${to}`;
  }

  #draw() {
    if (this.#version !== this.#incidents.version) {
      this.#version = this.#incidents.version;
      this.#events = this.#incidents.list(this.#name).map((one) =>
        ({...one, from: Date.parse(one.begin), until: one.end ? Date.parse(one.end) : Infinity}));
    }
    this.#at = Math.max(this.#first, Math.min(this.#last, this.#at));
    this.#marks.draw(this.#events, this.#day);
    const happened = this.#eventsOf(this.#at).map(({kind, text}) => `${words(kind)}: ${text}`);
    for (const output of this.#outputs.values()) {
      const text = [output.minute(this.#at).text, ...happened].join(", ");
      output.point(this.#at, this.#first, this.#last, output === this.#active, text);
    }
    const {name, summary} = this.#active;
    this.#summary.set(this.#outputs.size > 1 ? `${name}: ${summary}` : summary);
    const {files, seconds, text} = this.#active.minute(this.#at);
    const time = new Date(this.#at).toISOString().slice(0, 16).replaceAll(/[-:]/g, "");
    this.#choice.show(this.#at, [text, ...happened].join(" · "), seconds > 0 ? this.#address() : null,
      `${this.#name}-${name}-${time}Z.mp4`, files.map(({file, bytes: size}) => ({
        file, size, address: `${this.#path}/recordings/${[name, ...file.split("/")].map(encodeURIComponent).join("/")}`,
      })));
  }

  // Every third hour of the viewer's clock that has room.
  #showHours() {
    const {from, to} = this.#day;
    const labels = [];
    for (let at = new Date(from).setMinutes(0, 0, 0); at < to; at += 60 * MINUTE) {
      const hour = new Date(at).getHours();
      const share = (at - from) / (to - from);
      if (hour % 3 !== 0 || share < 0.02 || share > 0.98) continue;
      const label = el("span", {class: hour % 6 === 0 ? null : "between"}, minute(at).slice(-5));
      label.style.left = `${(100 * share).toFixed(2)}%`;
      labels.push(label);
    }
    this.#hours.replaceChildren(...labels);
  }
}

// The minute at the cursor in words, and what can be done with it.
class Choice {
  #when = new LiveText();
  #what = new LiveText();
  #text = el("p", {class: "minute"}, el("strong", {}, this.#when.node), " ", this.#what.node);
  #play;
  #save = el("a", {class: "button"}, "Download the minute");
  #files = el("span", {class: "files"});
  #shown = "";
  element;

  constructor(move, play) {
    const step = (by, label, sign) => el("button", {type: "button", "aria-label": label, click: () => move(by)}, sign);
    this.#play = el("button", {type: "button", click: play}, "Play the minute");
    this.element = el("div", {}, this.#text, el("p", {class: "buttons"}, step(-1, "A minute back", "‹"), this.#play,
      step(1, "A minute on", "›"), this.#save, this.#files));
  }

  // `address`: of the minute, null if nothing is recorded. `files`: [{file, size, address}], whole ones.
  show(at, text, address, saveAs, files) {
    this.#when.set(`${minute(at)}:`);
    this.#what.set(text);
    setAttribute(this.#text, "title", text);
    this.#play.disabled = address === null;
    setAttribute(this.#save, "href", address);
    setAttribute(this.#save, "download", saveAs);
    const shown = files.map(({file, size}) => `${file} ${size}`).join("\n");
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#files.replaceChildren(...files.map(({file, size, address: whole}) =>
      el("a", {href: whole, download: file.split("/").at(-1), title: `Download ${file}`}, `${file} (${bytes(size)})`)));
  }
}
