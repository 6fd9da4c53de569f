// Elements made by script. Names and reasons come from cameras and their servers: they only ever
// become text nodes and attribute values, never markup.

const SVG = "http://www.w3.org/2000/svg";

// el("p", {class: "reason"}, "text", node, …). A function among the attributes is a listener.
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// The same for SVG, without listeners.
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// One of the symbols of index.html. Screen readers skip it: a word stands beside it.
export const icon = (name) =>
  svg("svg", {class: "icon", "aria-hidden": "true"}, svg("use", {href: `#icon-${name}`}));

// A text node that is written only when its text is another.
export class LiveText {
  #text = "";
  node = document.createTextNode("");

  set(text) {
    if (text === this.#text) return;
    this.#text = text;
    this.node.data = text;
  }
}

// Sets an attribute only when its value is another; null removes it.
export function setAttribute(element, name, value) {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

// Moves `element` before `next` (null: to the end) only if it is not there yet. What has the
// keyboard's focus keeps it.
export function place(parent, element, next) {
  if (element.parentNode === parent && element.nextSibling === next) return;
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  parent.insertBefore(element, next);
  if (focused) focused.focus({preventScroll: true});
}

// Makes the children of `parent` those of `wanted`, in that order, with the fewest moves.
export function arrange(parent, wanted) {
  const keep = new Set(wanted);
  for (const child of [...parent.children]) if (!keep.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const element of wanted) {
    if (element === at) at = at.nextElementSibling;
    else place(parent, element, at);
  }
}
