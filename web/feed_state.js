// How well a feed is: one of four levels, each with a word, a colour and an icon.

import {count, counted, lossesIn, lost, reasons, times, words} from "./format.js";

// The worst first: this is the order of the tiles.
export const LEVELS = ["bad", "warn", "ok", "idle"];

const WORDS = {
  connecting: "Connecting",
  running: "Running",
  backoff: "Will retry",
  ended: "Ended",
  failed: "Failed",
};

// {level, word, reason, loses, since}: `reason` is the most important thing that is wrong, or ""; `since`: when
// that or the state began. `open`: the feed's incidents that last.
export function judge(feed, open = []) {
  const loses = feed.dropped_recently > 0;
  const {since} = feed;
  if (feed.state === "ended") return {level: "idle", word: WORDS.ended, reason: feed.reason ?? "", loses, since};
  if (!feed.up) {
    const word = feed.state === "running" ? "No frames" : (WORDS[feed.state] ?? feed.state);
    // The state begins anew with every try; the incident does not.
    const lostSince = open.find(({kind}) => ["source_lost", "feed_failed"].includes(kind))?.begin;
    return {level: "bad", word, reason: withCode(feed), loses, since: lostSince ?? since};
  }
  const trouble = troubleOf(feed, open);
  if (trouble) return {level: "warn", word: trouble.word, reason: trouble.reason, loses, since};
  return {level: "ok", word: WORDS[feed.state] ?? feed.state, reason: "", loses, since};
}

// The reason in words, behind the code word that metrics and incidents have for it.
function withCode({code, reason}) {
  return [code ? words(code) : "", reason].filter(Boolean).join(": ");
}

const LAST_MINUTE = "in the last minute";

// What is wrong with a feed that is delivered.
function troubleOf(feed, open) {
  const down = feed.outputs.find((o) => !["running", "ended"].includes(o.state));
  if (down) {
    const again = down.lost_recently > 1 ? `; lost ${down.lost_recently} times ${LAST_MINUTE}` : "";
    return {word: "Output down", reason: `output ${down.name}: ${withCode(down) || down.state}${again}`};
  }
  const unsteady = feed.outputs.find((o) => o.lost_recently > 0);
  if (unsteady) {
    const {name, code, lost_recently: losses} = unsteady;
    const why = code ? ` (${words(code)})` : "";
    return {word: "Output unsteady", reason: `output ${name}: lost ${counted(losses, "time")} ${LAST_MINUTE}${why}`};
  }
  const losing = feed.outputs.find((o) => o.packets_lost_recently > 0);
  if (losing) {
    const {name, packets_lost_recently: packets, queue, queue_limit: limit} = losing;
    const full = queue >= 0.9 * limit ? `, its queue is full (${queue} of ${limit})` : "";
    return {word: "Losing packets", reason: `output ${name}: ${counted(packets, "packet")} lost ${LAST_MINUTE}${full}`};
  }
  const encode = feed.encodes.find((e) => e.reason);
  if (encode) return {word: "Encode down", reason: `encode ${encode.name}: ${encode.reason}`};
  if (feed.dropped_recently > 0) {
    return {word: "Dropping", reason: `${counted(feed.dropped_recently, "frame")} lost in the last 10 s`};
  }
  const jumps = open.find(({kind}) => kind === "clock_jumped");
  if (jumps) return {word: "Clock jumps", reason: jumps.text};
  return feed.reason ? {word: "Running", reason: feed.reason} : null;
}

// The frames that a feed has lost since it was added.
export const lostBy = (feed) => lost(feed.dropped);

// "Dropped: ring full 12", "Packets lost: record 963" or both, since the feed was added.
export function lossesOf(feed) {
  const packets = feed.outputs.filter(({packets_lost: n}) => n > 0)
    .map(({name, packets_lost: n}) => `${name} ${count(n)}`);
  const frames = lostBy(feed) > 0 ? `Dropped: ${reasons(lossesIn(feed.dropped))}` : "";
  return [frames, packets.length > 0 ? `Packets lost: ${packets.join(", ")}` : ""].filter(Boolean).join(" · ");
}

// "1920×1080", and the size of an encode that makes larger pictures: "320×240 → 3840×2160".
export function sizes(feed) {
  const area = (size) => (size ? size.split("x").reduce((product, side) => product * Number(side), 1) : 0);
  const largest = feed.encodes.map(({size}) => size).sort((a, b) => area(b) - area(a))[0];
  const larger = feed.size && area(largest) > area(feed.size);
  return times(larger ? `${feed.size} → ${largest}` : feed.size ?? "");
}

// The step that holds the feed up, or null: a live source only sets the pace.
export const heldUpBy = ({up, bottleneck}) => (up && bottleneck && bottleneck !== "source" ? bottleneck : null);

// How an output is shown. One that has nothing to write, because its feed or its encode has none, is not well.
export const outputState = (feed, {state, reason}) =>
  (state === "running" && feed.state !== "ended" && (!feed.up || reason) ? "waiting" : state);

// The headline and the line below it.
export function summary(feeds, judged) {
  const delivered = feeds.filter((feed) => feed.up).length;
  const levels = judged.map((j) => j.level);
  const unwell = levels.filter((level) => level === "warn").length;
  const attention = unwell > 0 ? `, ${counted(unwell, "needs", "need")} attention` : "";
  const headline = feeds.length === 0
    ? "No feeds are configured"
    : `${delivered} of ${counted(feeds.length, "feed is", "feeds are")} delivered${attention}`;
  const parts = [];
  const amount = (n, one, many) => n > 0 && parts.push(counted(n, one, many));
  amount(levels.filter((l) => l === "bad").length, "is down", "are down");
  amount(feeds.filter((f) => f.state === "ended").length, "has ended", "have ended");
  amount(judged.filter((j) => j.loses).length, "drops frames", "drop frames");
  const limits = new Map();
  for (const stage of feeds.map(heldUpBy).filter(Boolean)) limits.set(stage, (limits.get(stage) ?? 0) + 1);
  for (const [stage, n] of [...limits].sort((a, b) => b[1] - a[1])) {
    amount(n, `is held up by ${stage}`, `are held up by ${stage}`);
  }
  const level = levels.includes("bad") ? "bad" : levels.includes("warn") ? "warn" : "ok";
  return {headline, detail: parts.join(" · "), delivered, level};
}
