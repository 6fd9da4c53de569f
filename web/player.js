// Plays an HLS output with hls.js, which is loaded when the first player opens.

import {el} from "./dom.js";

const LIBRARY = "/web/hls.light.min.mjs";
let there = null;

// False if the program was built without hls.js.
export function playerIsThere() {
  there ??= fetch(LIBRARY, {method: "HEAD"}).then((response) => response.ok, () => false);
  return there;
}

export class Player {
  element;
  #address;
  #video = el("video", {controls: true, muted: true, playsinline: true});
  #message = el("p", {class: "answer", role: "status"});
  #hls = null;
  #closed = false;

  // `onClose` is called when the viewer closes it.
  constructor(address, label, onClose) {
    this.#address = address;
    this.#video.muted = true;  // else a browser may refuse to begin by itself
    this.#video.setAttribute("aria-label", label);
    const close = () => {
      this.close();
      onClose();
    };
    this.element = el("div", {class: "player"}, this.#video, this.#message,
      el("button", {type: "button", click: close}, "Close the player"));
  }

  async start() {
    this.#message.textContent = "Loading …";
    const {default: Hls} = await import(LIBRARY);
    if (this.#closed) return;
    if (!Hls.isSupported()) {
      this.#message.textContent = "This browser cannot play HLS here.";
      return;
    }
    // Without a worker the policy of the page need not allow any.
    this.#hls = new Hls({enableWorker: false, liveSyncDurationCount: 3});
    this.#hls.on(Hls.Events.ERROR, (_, {fatal, details}) => {
      if (fatal) this.#message.textContent = `The player has stopped: ${details}`;
    });
    this.#video.addEventListener("playing", () => (this.#message.textContent = ""));
    this.#hls.loadSource(this.#address);
    this.#hls.attachMedia(this.#video);
    this.#video.play().catch(() => {});  // the viewer can press play
  }

  close() {
    this.#closed = true;
    this.#hls?.destroy();
    this.element.remove();
  }
}
