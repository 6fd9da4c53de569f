// A table whose rows are known by a key and whose cells are written only when they change.

import {LiveText, arrange, el} from "./dom.js";
import {Pill} from "./parts.js";

export class Table {
  element;
  #columns;
  #body = el("tbody");
  #rows = new Map();

  // `columns`: [key, title, class]. The first one is the row's title.
  constructor(title, columns) {
    this.#columns = columns;
    const head = columns.map(([, name, className]) =>
      name ? el("th", {scope: "col", class: className ?? null}, name) : el("td"));
    this.element = el("section", {class: "panel"}, el("h2", {}, title),
      el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": title},
        el("table", {}, el("thead", {}, el("tr", {}, ...head)), this.#body)));
  }

  // `rows`: [key, {column: value}]; a value is a text, {pill: [level, word]} or {button: [text, act]}.
  update(rows) {
    this.element.hidden = rows.length === 0;
    const keep = new Set(rows.map(([key]) => key));
    for (const key of this.#rows.keys()) if (!keep.has(key)) this.#rows.delete(key);
    for (const [key, values] of rows) {
      if (!this.#rows.has(key)) this.#rows.set(key, new Row(this.#columns));
      this.#rows.get(key).set(values);
    }
    arrange(this.#body, rows.map(([key]) => this.#rows.get(key).element));
  }
}

class Row {
  #cells = new Map();
  element = el("tr");

  constructor(columns) {
    columns.forEach(([key, , className], at) => {
      const element = at === 0 ? el("th", {scope: "row"}) : el("td", {class: className ?? null});
      const text = new LiveText();
      element.append(text.node);
      this.#cells.set(key, {element, text, kind: "text", pill: null, act: null});
      this.element.append(element);
    });
  }

  set(values) {
    for (const [key, cell] of this.#cells) {
      const value = values[key];
      const {pill, button} = value;
      become(cell, pill ? "pill" : button ? "button" : "text");
      if (pill) cell.pill.set(...pill);
      else cell.text.set(button ? button[0] : value);
      cell.act = button?.[1] ?? null;
    }
  }
}

// A cell that shows another kind of thing than before loses what it had, and the action with it. The keyboard's
// focus then stays in the table.
function become(cell, kind) {
  if (cell.kind === kind) return;
  const focused = cell.element.contains(document.activeElement);
  cell.kind = kind;
  cell.pill = kind === "pill" ? new Pill() : null;
  cell.element.replaceChildren(kind === "text" ? cell.text.node : kind === "pill" ? cell.pill.element
    : el("button", {type: "button", click: () => cell.act()}, cell.text.node));
  if (focused) cell.element.closest("[tabindex]").focus({preventScroll: true});
}
