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
  #url;
  #shown = null;
  #next = null;
  #closed = false;

  // The picture comes into `frame`, an element of fixed size.
  constructor(frame, feed, width) {
    this.#frame = frame;
    this.#url = `/api/v1/feeds/${encodeURIComponent(feed)}/snapshot.jpg?width=${width}`;
    all.set(frame, this);
    observer.observe(frame);
  }

  async load() {
    this.due = performance.now() + EVERY_MS;
    try {
      const response = await fetch(this.#url, {priority: "low"});
      if (response.status === 429) this.due = performance.now() + RARELY_MS;
      if (!response.ok) return;
      const image = new Image();
      image.alt = "";
      image.decoding = "sync";  // so that it does not flicker; decode() would cost a frame
      image.src = URL.createObjectURL(await response.blob());
      forget(this.#next);
      this.#next = image;
      if (this.#closed) forget(image);
    } catch {
      // No picture this time. What is wrong comes with the event stream.
    }
  }

  // Shows the newest picture, if it is another. It is called when the page is drawn anyway: a frame for
  // each picture would cost more than the pictures.
  show() {
    if (!this.#next?.complete || this.#next.naturalWidth === 0) return;
    if (this.#shown) this.#shown.replaceWith(this.#next);
    else this.#frame.prepend(this.#next);
    forget(this.#shown);
    [this.#shown, this.#next] = [this.#next, null];
  }

  // Ends the requests and gives the picture's memory back.
  close() {
    this.#closed = true;
    observer.unobserve(this.#frame);
    shown.delete(this.#frame);
    forget(this.#shown);
    forget(this.#next);
  }
}

const forget = (image) => image && URL.revokeObjectURL(image.src);

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
