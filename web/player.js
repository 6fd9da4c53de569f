// Plays recordings, and HLS outputs with hls.js, which is loaded when the first of them plays.

import {el} from "./dom.js";

const LIBRARY = "/web/hls.light.min.mjs";
let there = null;
let failures = 0;  // of loading it

// False if the program was built without hls.js. If nobody answers, playing will tell.
export function playerIsThere() {
  there ??= fetch(LIBRARY, {method: "HEAD"}).then((response) => response.ok, () => true);
  return there;
}

export class Player {
  element;
  label;
  #video = el("video", {controls: true, muted: true, playsinline: true});
  #message = el("p", {class: "answer", role: "status"});
  #hls = null;
  #loads = false;
  #closed = false;

  // `onClose` is called when the viewer closes it, `onEnd` when a recording has been played to its end.
  constructor(label, onClose, onEnd) {
    this.label = label;
    this.#video.muted = true;  // else a browser may refuse to begin by itself
    this.#video.setAttribute("aria-label", label);
    this.#video.addEventListener("playing", () => (this.#message.textContent = ""));
    this.#video.addEventListener("ended", onEnd);
    const close = () => {
      this.close();
      onClose();
    };
    this.element = el("div", {class: "player"}, this.#video, this.#message,
      el("button", {type: "button", click: close}, "Close the player"));
  }

  // A recording, which the browser plays by itself.
  playFile(address) {
    this.#message.textContent = "Loading …";
    this.#video.onerror = () => (this.#message.textContent =
      "This browser cannot play it, or it is no longer there. It can be downloaded, below.");
    this.#video.src = address;
    this.#begin();
  }

  async playList(address) {
    if (this.#loads) return;
    this.#loads = true;
    this.#message.textContent = "Loading …";
    const Hls = await this.#library();
    if (!Hls || this.#closed) return;
    if (!Hls.isSupported()) {
      this.#message.textContent = "This browser cannot play HLS here.";
      return;
    }
    // Without a worker the policy of the page need not allow any.
    this.#hls = new Hls({enableWorker: false, liveSyncDurationCount: 3});
    this.#hls.on(Hls.Events.ERROR, (_, {fatal, details}) => {
      if (!fatal) return;
      this.#message.textContent = `The player has stopped (${details}). Press Play beside the output to try again.`;
      this.#hls.destroy();
      this.#loads = false;
    });
    this.#hls.loadSource(address);
    this.#hls.attachMedia(this.#video);
    this.#begin();
  }

  // Null if it cannot be loaded. Some browsers keep it in mind for an address that it failed: the fragment makes
  // another address of it.
  async #library() {
    try {
      return (await import(failures > 0 ? `${LIBRARY}#${failures}` : LIBRARY)).default;
    } catch {
      ++failures;
      this.#loads = false;
      this.#message.textContent = "The player could not be loaded from the daemon. Press Play beside the output to try again.";
      return null;
    }
  }

  #begin() {
    this.#video.play().catch(() => {});  // the viewer can press play
  }

  close() {
    this.#closed = true;
    this.#hls?.destroy();
    this.#video.onerror = null;
    this.#video.removeAttribute("src");  // ends its requests
    this.#video.load();
    this.element.remove();
  }
}
