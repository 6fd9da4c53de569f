// Numbers, durations and times as people read them. What is not known is a dash.

const NONE = "–";
const known = (value) => typeof value === "number" && Number.isFinite(value);

export const fixed = (value, digits) => (known(value) ? value.toFixed(digits) : NONE);
export const frameRate = (value) => fixed(value, 1);
// Little is not nothing: 0.3 %.
export const percent = (share) =>
  !known(share) ? NONE : share > 0 && share < 0.0095 ? `${Math.max(0.1, share * 100).toFixed(1)} %`
    : `${Math.round(share * 100)} %`;

// In steps of 1000: 950, 12.3k, 4.56M.
function scaled(value, units) {
  let step = 0;
  while (value >= 999.5 && step + 1 < units.length) {
    value /= 1000;
    ++step;
  }
  const digits = step === 0 || value >= 99.95 ? 0 : 1;
  return value.toFixed(digits) + units[step];
}
export const count = (value) =>
  !known(value) ? NONE : value < 10000 ? String(value) : scaled(value, ["", "k", "M", "G", "T"]);
// 1 lane, 2 lanes; 1 feed is, 2 feeds are.
export const counted = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
// Every digit, for a ledger that must balance: 899,992.
export const exact = (value) =>
  known(value) ? String(value).replace(/\B(?=(\d{3})+$)/g, ",") : NONE;
export const bitRate = (value) =>
  known(value) ? scaled(value, [" b/s", " kb/s", " Mb/s", " Gb/s"]) : NONE;
export const bytes = (value) =>
  known(value) ? scaled(value, [" B", " kB", " MB", " GB", " TB"]) : NONE;

export function milliseconds(seconds) {
  if (!known(seconds)) return NONE;
  const ms = seconds * 1000;
  if (ms >= 999.5) return `${seconds.toFixed(1)} s`;
  return `${ms < 9.95 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

// Half of the frames are faster than the first figure, 99 of 100 faster than the second.
export function latency(value) {
  if (!value) return NONE;
  const [half, most] = [milliseconds(value.p50), milliseconds(value.p99)];
  const sameUnit = half.endsWith(" ms") && most.endsWith(" ms");
  return `${sameUnit ? half.slice(0, -3) : half} / ${most}`;
}

// The two largest units: 3 h 12 min, 4 min 12 s.
export function duration(seconds) {
  if (!known(seconds)) return NONE;
  const s = Math.max(0, Math.floor(seconds));
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = Math.max(0, units.findIndex(([size]) => s >= size));
  if (s < 1) return "0 s";
  let rest = s;
  const parts = [];
  for (const [size, unit] of units.slice(first, first + 2)) {
    const whole = Math.floor(rest / size);
    rest -= whole * size;
    if (whole > 0) parts.push(`${whole} ${unit}`);
  }
  return parts.join(" ");
}

// For places that are small: minutes have no seconds beside them.
export const age = (seconds) =>
  duration(seconds >= 60 && seconds < 3600 ? 60 * Math.floor(seconds / 60) : seconds);

const two = (value) => String(value).padStart(2, "0");
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

// In the viewer's time zone: 03:12:07, with the day if it is not today.
export function clock(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return NONE;
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const today = date.toDateString() === new Date().toDateString();
  return today ? text : `${date.getDate()} ${MONTHS[date.getMonth()]} ${text}`;
}

// The same without the seconds: 03:12.
export const minute = (time) => clock(time).slice(0, -3);

// Words of the API as people write them: ring_full is "ring full".
export const words = (name) => (name ? String(name).replaceAll("_", " ") : NONE);

// {"ring_full": 12, "encoder": 3} is "ring full 12, encoder 3"; the largest first.
export const reasons = (counts) =>
  Object.entries(counts ?? {})
    .sort((a, b) => b[1] - a[1])
    .map(([name, value]) => `${words(name)} ${count(value)}`)
    .join(", ");

// The counts of frames that were lost. `rate` is none: that encode takes fewer on purpose.
export const lossesIn = (counts) =>
  Object.fromEntries(Object.entries(counts ?? {}).filter(([name]) => name !== "rate"));
export const lost = (counts) => Object.values(lossesIn(counts)).reduce((sum, n) => sum + n, 0);

// "1920x1080" is "1920×1080".
export const times = (size) => (size ?? "").replaceAll("x", "×");
