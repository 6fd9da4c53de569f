// The colours of style.css for what is drawn on canvases. They change with the system's theme.

const dark = matchMedia("(prefers-color-scheme: dark)");
const NAMES = ["h2d", "kernel", "d2h"];
let colours = null;
dark.addEventListener("change", () => (colours = null));

export function palette() {
  if (!colours) {
    const style = getComputedStyle(document.documentElement);
    colours = Object.fromEntries(NAMES.map((n) => [n, style.getPropertyValue(`--${n}`).trim()]));
  }
  return colours;
}

// "#rrggbb" as [r, g, b].
export const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
