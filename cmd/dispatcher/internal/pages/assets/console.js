// The console's script: it replaces the parts of a page that have changed, shows the effect of a
// change of weights before it is made, and keeps what was typed when a session ends. Without it
// every page works, and is loaded again by hand.
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

// What is typed into a form is kept in this tab. When the session ends before the form is carried
// out, it is put back after signing in again, with the version that the form was made from: a
// change of somebody else meanwhile is still noticed. Numbers, texts of messages and tokens are not
// kept.
const user = document.querySelector(".who span")?.textContent;
const keptForms = user ? [...document.querySelectorAll("main form[method=post]")] : [];

// keep replaces what is kept; null for nothing. A browser may refuse: then nothing is kept.
function keep(form) {
  try {
    if (form) sessionStorage.setItem("kept", JSON.stringify(form));
    else sessionStorage.removeItem("kept");
  } catch {}
}

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem("kept"));
  } catch {
    return null;
  }
}

// about is what a form would change: its address, and the hidden fields that name a lane or tenant.
function about(form) {
  const named = [...form.elements].filter((field) => field.type === "hidden" &&
    !["csrf", "version", "previewed"].includes(field.name));
  return [form.getAttribute("action"), ...named.map((field) => field.value)].join(" ");
}

function keptFields(form) {
  return [...form.elements].filter((field) => field.name && field.name !== "csrf" &&
    !field.matches("button, [type=password], [type=tel], [data-unkept]"));
}

function keepForm(event) {
  const form = event.target.closest("form");
  const at = keptForms.indexOf(form);
  if (at < 0) return;
  const fields = keptFields(form).map((field) => [field.name,
    field.type === "checkbox" || field.type === "radio" ? field.checked : field.value]);
  keep({ user, page: location.pathname, at, about: about(form), fields });
}
for (const name of ["input", "change", "submit"]) addEventListener(name, keepForm);

// sessionEnded marks what is kept: only a form that the end of a session has lost is put back.
function sessionEnded() {
  const form = kept();
  if (form) keep({ ...form, lost: true });
}

function putBack() {
  const was = kept();
  const form = was && keptForms[was.at];
  if (!was?.lost || was.user !== user || was.page !== location.pathname || !form ||
      about(form) !== was.about) {
    keep(null);
    return;
  }
  keptFields(form).forEach((field, i) => {
    const [name, value] = was.fields[i] ?? [];
    if (name !== field.name) return;
    if (typeof value === "boolean") field.checked = value;
    else field.value = value;
  });
  const note = document.createElement("div");
  note.className = "message warn";
  note.setAttribute("role", "status");
  note.append(Object.assign(document.createElement("p"), {
    textContent: "Your session had ended. What you had typed is here again, without numbers and " +
      "texts of messages: see that it was not carried out yet, then send it.",
  }));
  form.before(note);
  keep({ ...was, lost: false });
  form.dispatchEvent(new Event("input", { bubbles: true }));
}

if (user) putBack();
else sessionEnded();
document.querySelector(".who form")?.addEventListener("submit", () => keep(null));

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
    sessionEnded();
    location.reload();
  });
  source.addEventListener("error", () => setState("stale",
    source.readyState === EventSource.CLOSED ? "no updates: reload the page"
      : "connection lost, trying again"));
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
