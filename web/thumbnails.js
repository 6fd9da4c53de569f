// The feeds' pictures. A picture is asked for only while it can be seen, at most every 5 s, and few
// at a time: the browser has six connections to the daemon, and one is the event stream's. So the
// requests of many tiles follow each other over the five seconds.

const EVERY_MS = 5000;
// After 429: this feed only copies, so a picture costs the daemon the decoding of a keyframe.
const RARELY_MS = 20000;
const AT_ONCE = 2;

const all = new WeakMap();  // frame -> Thumbnail
const shown = new Map();    // those that can be seen
const observer = new IntersectionObserver((entries) => {
  for (const {isIntersecting, target} of entries) {
    if (isIntersecting) shown.set(target, all.get(target));
    else shown.delete(target);
  }
  loadDue();
});
let loading = 0;
let timer = 0;

export class Thumbnail {
  // Feeds that are down keep their last picture.
  wanted = false;
  due = 0;
  #frame;
  #image = document.createElement("img");
  #url;
  #address = null;
  #closed = false;

  // The picture comes into `frame`, an element of fixed size.
  constructor(frame, feed, width) {
    this.#frame = frame;
    this.#url = `/api/v1/feeds/${encodeURIComponent(feed)}/snapshot.jpg?width=${width}`;
    this.#image.alt = "";
    all.set(frame, this);
    observer.observe(frame);
  }

  async load() {
    this.due = performance.now() + EVERY_MS;
    let address = null;
    try {
      const response = await fetch(this.#url, {priority: "low"});
      if (response.status === 429) this.due = performance.now() + RARELY_MS;
      if (!response.ok) return;
      address = URL.createObjectURL(await response.blob());
      const next = new Image();
      next.src = address;
      await next.decode();
      if (this.#closed) throw new Error("closed");
      this.#image.src = address;
      if (!this.#address) this.#frame.append(this.#image);
      [address, this.#address] = [this.#address, address];
    } catch {
      // No picture this time. What is wrong comes with the event stream.
    } finally {
      if (address) URL.revokeObjectURL(address);
    }
  }

  // Ends the requests and gives the picture's memory back.
  close() {
    this.#closed = true;
    observer.unobserve(this.#frame);
    shown.delete(this.#frame);
    if (this.#address) URL.revokeObjectURL(this.#address);
  }
}

// Loads what is due, and looks again when something can be.
function loadDue() {
  clearTimeout(timer);
  if (document.visibilityState !== "visible") return;
  const waiting = [...shown.values()].filter((t) => t.wanted).sort((a, b) => a.due - b.due);
  for (const thumbnail of waiting) {
    if (loading >= AT_ONCE || thumbnail.due > performance.now()) break;
    ++loading;
    thumbnail.load().finally(() => {
      --loading;
      loadDue();
    });
  }
  timer = setTimeout(loadDue, 500);
}
document.addEventListener("visibilitychange", loadDue);
