// How well a feed is: one of four levels, each with a word, a colour and an icon.

import {lost} from "./format.js";

// The worst first: this is the order of the tiles.
export const LEVELS = ["bad", "warn", "ok", "idle"];

const WORDS = {
  connecting: "Connecting",
  running: "Running",
  backoff: "Will retry",
  ended: "Ended",
  failed: "Failed",
};

// {level, word, reason, loses}: `reason` is the most important thing that is wrong, or "".
export function judge(feed) {
  const loses = feed.dropped_recently > 0;
  if (feed.state === "ended") return {level: "idle", word: WORDS.ended, reason: feed.reason ?? "", loses};
  if (!feed.up) {
    const word = feed.state === "running" ? "No frames" : (WORDS[feed.state] ?? feed.state);
    return {level: "bad", word, reason: feed.reason ?? "", loses};
  }
  const trouble = troubleOf(feed);
  if (trouble) return {level: "warn", word: trouble.word, reason: trouble.reason, loses};
  return {level: "ok", word: WORDS[feed.state] ?? feed.state, reason: "", loses};
}

// What is wrong with a feed that is delivered.
function troubleOf(feed) {
  const output = feed.outputs.find((o) => !["running", "ended"].includes(o.state));
  if (output) {
    return {word: "Output down", reason: `output ${output.name}: ${output.reason ?? output.state}`};
  }
  const encode = feed.encodes.find((e) => e.reason);
  if (encode) return {word: "Encode down", reason: `encode ${encode.name}: ${encode.reason}`};
  if (feed.dropped_recently > 0) {
    const frames = feed.dropped_recently === 1 ? "1 frame" : `${feed.dropped_recently} frames`;
    return {word: "Dropping", reason: `${frames} lost in the last 10 s`};
  }
  return feed.reason ? {word: "Running", reason: feed.reason} : null;
}

// The frames that a feed has lost since it was added.
export const lostBy = (feed) => lost(feed.dropped);

// The headline and the line below it.
export function summary(feeds, judged) {
  const delivered = feeds.filter((feed) => feed.up).length;
  const verb = feeds.length === 1 ? "feed is" : "feeds are";
  const headline = feeds.length === 0
    ? "No feeds are configured"
    : `${delivered} of ${feeds.length} ${verb} delivered`;
  const parts = [];
  const levels = judged.map((j) => j.level);
  const amount = (n, one, many) => n > 0 && parts.push(`${n} ${n === 1 ? one : many}`);
  amount(levels.filter((l) => l === "bad").length, "is down", "are down");
  amount(feeds.filter((f) => f.state === "ended").length, "has ended", "have ended");
  amount(judged.filter((j) => j.loses).length, "drops frames", "drop frames");
  const limits = new Map();
  for (const {bottleneck, up} of feeds) {
    if (up && bottleneck && bottleneck !== "source") {
      limits.set(bottleneck, (limits.get(bottleneck) ?? 0) + 1);
    }
  }
  const limited = [...limits].sort((a, b) => b[1] - a[1]).map(([stage, n]) => `${stage} ${n}`);
  if (limited.length > 0) parts.push(`held up by: ${limited.join(", ")}`);
  const level = levels.includes("bad") ? "bad" : levels.includes("warn") ? "warn" : "ok";
  return {headline, detail: parts.join(" · "), delivered, level};
}
