// Live views: the server renders, this module receives the content and updates the page.
import { morph } from "./morph.js";

const content = document.querySelector("main[data-live]");
const button = document.getElementById("live");
const state = document.getElementById("live-state");

let source = null;
let again = 0; // timer of the next attempt
let wait = 500; // ms until the next attempt
let paused = false;

function show(text, kind) {
  state.textContent = text;
  state.dataset.kind = kind;
}

function stop() {
  clearTimeout(again);
  if (source) source.close();
  source = null;
}

function start() {
  stop();
  if (paused || document.hidden) return;
  source = new EventSource(location.pathname + location.search);
  source.addEventListener("process", (e) => {
    wait = 500;
    // Reload, because this process refuses the forms that an earlier one rendered.
    if (e.data !== document.body.dataset.process) location.reload();
  });
  source.addEventListener("content", (e) => {
    show("live", "good");
    morph(content, e.data);
    document.dispatchEvent(new CustomEvent("page:content"));
  });
  source.addEventListener("trouble", (e) => show(e.data, "bad"));
  source.onerror = () => {
    show("reconnecting …", "bad");
    stop();
    again = setTimeout(start, wait);
    wait = Math.min(wait * 2, 10000);
  };
}

if (content) {
  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume" : "Pause";
    if (paused) {
      stop();
      show("paused", "idle");
    } else start();
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  addEventListener("pagehide", stop);
  addEventListener("pageshow", start);
  if (!source) start();
}
