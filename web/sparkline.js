// A small curve over ten minutes: one or two lines, and bars for losses. It is SVG and not a canvas:
// each canvas costs the browser something in every frame, also when nothing is drawn.

import {setAttribute, svg} from "./dom.js";

// The picture's own size; it is stretched to that of its place.
const WIDTH = 1200;
const HEIGHT = 100;

export class Sparkline {
  element;
  #paths = {faint: svg("path", {class: "faint"}), main: svg("path"), bars: svg("path", {class: "bars"})};
  #version = -1;

  // `label`: what screen readers say instead.
  constructor(label, className = "spark") {
    this.element = svg("svg", {
      class: className, role: "img", "aria-label": label, viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
    }, ...Object.values(this.#paths));
  }

  // {main, faint, bars}: arrays of numbers or null, oldest first, or nothing; `points`: how many fill
  // the width. Nothing is done if `version` is as before.
  draw({main = [], faint = [], bars = []}, points, version) {
    if (version === this.#version) return;
    this.#version = version;
    const top = most(main, most(faint, 1e-9)) * 1.1;
    setAttribute(this.#paths.main, "d", line(main, points, top));
    setAttribute(this.#paths.faint, "d", line(faint, points, top));
    setAttribute(this.#paths.bars, "d", columns(bars, points));
  }
}

const most = (values, least) => values.reduce((sum, value) => Math.max(sum, value ?? 0), least);
const x = (index, length, points) => Math.round(((points - length + index + 0.5) * WIDTH) / points);

// A hole in the data is a hole in the line.
function line(values, points, top) {
  let path = "";
  let open = false;
  values.forEach((value, index) => {
    if (value !== null) {
      const y = Math.round(HEIGHT - 4 - (value / top) * (HEIGHT - 8));
      path += `${open ? "L" : "M"}${x(index, values.length, points)} ${y}`;
    }
    open = value !== null;
  });
  return path;
}

// A loss is always seen: a column is at least a third of the height.
function columns(values, points) {
  const top = most(values, 1);
  let path = "";
  values.forEach((value, index) => {
    if (!value) return;
    const y = Math.round(HEIGHT * (2 / 3) * (1 - value / top));
    path += `M${x(index, values.length, points)} ${HEIGHT}V${y}`;
  });
  return path;
}
