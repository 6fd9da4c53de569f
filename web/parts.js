// Parts that several views show: a state's pill, and a list of named values.

import {LiveText, el, icon, setAttribute} from "./dom.js";

// A word with its colour and icon: never the colour alone.
export class Pill {
  #word = new LiveText();
  #icon = icon("idle");
  element = el("span", {class: "pill"}, this.#icon, el("span", {}, this.#word.node));

  set(level, word) {
    this.#word.set(word);
    setAttribute(this.element, "data-level", level);
    setAttribute(this.#icon.firstChild, "href", `#icon-${level}`);
  }
}

// Facts([["fps_in", "In", "frames per second"], …]): a list with a value for each key.
export class Facts {
  element;
  #values = new Map();

  constructor(rows, className = "facts") {
    this.element = el("dl", {class: className});
    for (const [key, name, title] of rows) {
      const text = new LiveText();
      const value = el("dd", {}, text.node);
      this.#values.set(key, {text, value});
      this.element.append(el("div", {title: title ?? null}, el("dt", {}, name), value));
    }
  }

  // `level`: null, or the colour that the value has.
  set(key, text, level = null) {
    const entry = this.#values.get(key);
    entry.text.set(text);
    setAttribute(entry.value, "data-level", level);
  }
}

// Downloads of what the recorder has; `feed`: null for all.
export function traceLinks(feed = null) {
  const query = feed === null ? "" : `&feed=${encodeURIComponent(feed)}`;
  const link = (seconds) => el("a", {
    class: "button", href: `/api/v1/trace?seconds=${seconds}${query}`,
    download: `framelane-${feed ?? "all"}-${seconds}s.trace.json`,
  }, `Last ${seconds} s`);
  return el("p", {class: "buttons"}, el("span", {class: "quiet"}, "Trace for ui.perfetto.dev:"), link(10), link(60));
}
