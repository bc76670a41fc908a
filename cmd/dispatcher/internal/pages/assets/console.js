// The console's script: it replaces the parts of a page that have changed, and shows the effect of
// a change of weights before it is made. Without it every page works, and is loaded again by hand.
"use strict";

// parts are the elements with an id and data-part; each is replaced when its text is another.
function replaceParts(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  const focused = document.activeElement;
  const focus = focused && (focused.id || focused.getAttribute("href"));
  for (const next of parsed.querySelectorAll("[data-part]")) {
    const old = document.getElementById(next.id);
    if (old && old.outerHTML !== next.outerHTML) {
      const lost = old.contains(focused);
      const left = old.querySelector(".scroll")?.scrollLeft;
      old.replaceWith(next);
      if (left) next.querySelector(".scroll").scrollLeft = left;
      if (lost && focus) {
        const again = document.getElementById(focus) ||
          [...next.querySelectorAll("a")].find((a) => a.getAttribute("href") === focus);
        again?.focus({ preventScroll: true });
      }
    }
  }
}

const liveRegion = document.querySelector("[data-live]");
const state = document.getElementById("state");

function setState(name, text) {
  if (state && state.dataset.state !== name) {
    state.dataset.state = name;
    state.textContent = text;
  }
}

if (liveRegion) {
  const source = new EventSource(liveRegion.dataset.live);
  source.addEventListener("part", (event) => {
    replaceParts(event.data);
    setState("live", "live");
  });
  source.addEventListener("same", () => setState("live", "live"));
  source.addEventListener("stale", () => setState("stale", "no news: the database does not answer"));
  source.addEventListener("signout", () => {
    source.close();
    setState("stale", "signed out");
    location.reload();
  });
  source.addEventListener("error", () => setState("stale", "connection lost, trying again"));
  addEventListener("pagehide", () => source.close());
}

// A form with data-preview shows in the element that data-into names what it would do.
for (const form of document.querySelectorAll("form[data-preview]")) {
  const into = document.getElementById(form.dataset.into);
  let timer, turn = 0;
  const preview = async () => {
    const mine = ++turn;
    try {
      const answer = await fetch(form.dataset.preview, {
        method: "POST", body: new URLSearchParams(new FormData(form)),
        headers: { Accept: "text/html" },
      });
      const html = await answer.text();
      if (mine === turn && answer.headers.get("X-Part") === "preview") {
        const parsed = new DOMParser().parseFromString(html, "text/html");
        into.replaceChildren(...parsed.body.childNodes);
      }
    } catch {
      // The next input tries again.
    }
  };
  form.addEventListener("input", (event) => {
    if (event.target.dataset.quiet !== undefined) return;
    clearTimeout(timer);
    timer = setTimeout(preview, 150);
  });
}

// A link with data-line selects that line of the text area that it leads to.
for (const link of document.querySelectorAll("a[data-line]")) {
  link.addEventListener("click", (event) => {
    const area = document.querySelector(link.hash);
    const lines = area.value.split("\n");
    const before = lines.slice(0, link.dataset.line - 1);
    const start = before.reduce((sum, line) => sum + line.length + 1, 0);
    event.preventDefault();
    area.focus();
    area.setSelectionRange(start, start + lines[before.length].length);
    area.scrollTop = area.scrollHeight * before.length / lines.length - area.clientHeight / 2;
  });
}

// "/" goes to the search of a message, as in many tools.
addEventListener("keydown", (event) => {
  const at = event.target;
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey ||
      at.matches("input, textarea, select")) return;
  const find = document.getElementById("find");
  if (find) {
    event.preventDefault();
    find.focus();
  }
});
