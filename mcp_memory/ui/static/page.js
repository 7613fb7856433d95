// Keys, and a fresh <main> when something changed. Without this script everything can still be read and done.

import { build, tellZone } from "./build.js";

export const main = document.getElementById("main");
const dialog = document.getElementById("keys");
const search = main.querySelector("[action$='/search'] [name=q]") ?? document.getElementById("search");
export const base = document.querySelector("header .name").pathname.replace(/\/$/, "");
const here = location.pathname.slice(base.length);

if (/^#[\w-]{72}$/.test(location.hash)) history.replaceState(null, "", location.pathname + location.search); // a key
tellZone(`${base.slice(0, base.lastIndexOf("/"))}/`);

// A form that was opened in the place of what it changes has the focus.
const FIELD = ".acts :is(textarea, [type=date])";
main.addEventListener("toggle", (event) => event.target.open && event.target.querySelector(FIELD)?.focus(), true);

// --- keys ---

const ROW = "[data-rows] > *, .prose li";
const isShown = (node) => node.checkVisibility?.() ?? true;
const rows = () => [...main.querySelectorAll(ROW)].filter(isShown);
const rowWithFocus = () => document.activeElement?.closest(ROW);

function focusRow(row, how) {
  row?.setAttribute("tabindex", -1);
  row?.focus(how);
}

function move(step) {
  const all = rows();
  const at = all.indexOf(rowWithFocus());
  focusRow(all[at < 0 && step < 0 ? all.length - 1 : Math.min(all.length - 1, Math.max(0, at + step))]);
}

// Where keys lead from a row about a statement or a message.
const WAYS = { e: "/*#evidence", c: "/*#correct", x: "/*#ended", f: "/forget?ids=*" };

// Presses what has a key of its own: in the row with the focus, else in a notice, else on the page where only one has it.
function press(key) {
  const row = rowWithFocus();
  const own = key === "e" ? ".quote a[href]" : `[data-key="${key}"]`;
  const paths = [...(row?.querySelectorAll("a[href]") ?? [])].map((link) => `${link.pathname} `).join("");
  const id = /\/(a\d+) /.exec(paths) ?? /\/(t\d+) /.exec(paths);
  const all = main.querySelectorAll(own);
  const chosen = row?.querySelector(own);
  if (chosen) chosen.click();
  else if (id && key in WAYS && (id[1][0] === "a" || "ef".includes(key))) location.assign(base + WAYS[key].replace("*", id[1]));
  else (main.querySelector(`.note ${own}`) ?? (key === "e" || all.length === 1 ? all[0] : null))?.click();
}

// Leaves a field, and closes the form that was opened in the place of what it changes.
function leave() {
  document.activeElement?.blur();
  const act = main.querySelector(".acts > [open]");
  act?.removeAttribute("open");
  act?.firstElementChild.focus();
}

// Sends the form with the focus, or else the only one of the page.
function send(target) {
  const all = [...main.querySelectorAll("form[method=post]:not(.inline)")].filter(isShown);
  const form = target.form ?? target.closest("form") ?? (all.length === 1 ? all[0] : null);
  const isButton = (part) => part.type === "submit";
  form?.requestSubmit(isButton(target) ? target : [...form.elements].find(isButton));
}

// After g, the pages of the navigation show their letters until the next key: a letter, or a number.
const menu = document.getElementById("menu");

function go(key) {
  menu.className = "";
  if (!/^[a-z1-9]$/.test(key)) return;
  (menu.querySelector(`[data-go="${key}"]`) ?? menu.querySelectorAll("nav a")[key - 1])?.click();
}

const keys = {
  __proto__: null,
  "/": () => (search.focus(), search.select()),
  j: () => move(1),
  k: () => move(-1),
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  "?": () => dialog.showModal(),
  g: () => (menu.className = "goes"),
  Escape: leave,
};

addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented && !event.target.href) {
    event.preventDefault();
    send(event.target);
  }
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const field = event.target.closest?.("input:not([type=checkbox], [type=radio], [type=range]), textarea, select");
  if (dialog.open || (field && event.key !== "Escape")) return;
  if (menu.className) {
    go(event.key);
  } else if (event.key in keys && (event.target.matches?.(ROW) || !event.key.startsWith("Arrow"))) {
    event.preventDefault();
    keys[event.key]();
  } else if (event.key === "Enter" && event.target.matches?.(ROW)) {
    event.target.querySelector("a[href], summary")?.click();
  } else if (/^[a-z]$/.test(event.key)) {
    press(event.key);
  }
});

search.addEventListener("focus", () => document.getElementById("menu").hidePopover?.());

const shortcuts = document.getElementById("open-keys");
shortcuts.hidden = false;
shortcuts.addEventListener("click", keys["?"]);

// The row with the focus has it again after the reader comes back to the page.
main.addEventListener("focusin", () => {
  const row = rows().indexOf(rowWithFocus());
  if (row >= 0) history.replaceState({ row }, "");
});
if (/^#[a-z]+$/.test(location.hash)) main.querySelector(`details${location.hash}`)?.setAttribute("open", "");
else focusRow(rows()[history.state?.row ?? (here === "/search" ? 0 : -1)], { preventScroll: true });

// --- changes ---

const QUIET = ["/search", "/forget"]; // what is read or decided there must not move
const SOON = 80, AGAIN = 3_000; // milliseconds
const CLOSED = base.startsWith("/ui/")
  ? "The server does not answer. This page goes on when it does."
  : "The memory is closed: run mcp-memory ui to open it again.";
let source, clock, asking, isStale, failures = 0;
const closed = document.createElement("p");
closed.className = "note warn";
closed.setAttribute("role", "status");

function connect() {
  source?.close();
  source = new EventSource(`${base}/events`);
  source.onmessage = later;
  source.onopen = () => {
    failures = 0;
    closed.remove();
    if (isStale) later();
  };
  source.onerror = () => {
    isStale = true; // it may have missed changes
    if (++failures > 1 && !closed.isConnected) {
      main.prepend(closed);
      closed.textContent = CLOSED; // a text that is put into a status is read aloud
    }
    if (source.readyState !== EventSource.CLOSED) return;
    later(); // signed out, perhaps
    setTimeout(() => source.readyState === EventSource.CLOSED && !document.hidden && connect(), AGAIN);
  };
}

function later() {
  isStale = true;
  clearTimeout(clock);
  clock = setTimeout(refresh, SOON);
}

// Whether the reader is writing, choosing or selecting something that a new page would take away.
function isBusy() {
  const fields = main.querySelectorAll("input:not([type=hidden]), textarea, select");
  const changed = [...fields].some((field) =>
    field.matches("[type=checkbox], [type=radio]") ? field.checked !== field.defaultChecked
    : field.matches("select") ? [...field.options].some((option) => option.selected && !option.defaultSelected)
    : field.value !== field.defaultValue);
  const chosen = getSelection();
  const selects = chosen && !chosen.isCollapsed && main.contains(chosen.anchorNode);
  return dialog.open || changed || selects || document.activeElement?.closest("main form") !== null;
}

async function refresh() {
  if (asking || !isStale || document.hidden || isBusy()) return;
  asking = true;
  isStale = false;
  let away = false;
  try {
    const answer = await ask();
    if (answer.status === 401) return location.reload();
    if (answer.ok) replace(await answer.json());
  } catch {
    isStale = away = true; // the stream opens again when the server is back
  } finally {
    asking = false;
    if (isStale && !away) later();
  }
}

export const ask = () => fetch(location.pathname + location.search, {
  headers: { accept: "application/json", "mcp-memory-refresh": "1" },
});

// Puts `base` before the addresses of built nodes.
export function rebase(within) {
  for (const name of ["href", "action", "cite"]) {
    for (const node of within.querySelectorAll(`[${name}^="/"]`)) node.setAttribute(name, base + node.getAttribute(name));
  }
}

function replace(page) {
  if (isBusy()) return void (isStale = true);
  const made = page.body.map((node) => build(node));
  const title = main.querySelector("h1");
  title.textContent = page.title;
  const kept = keep();
  main.replaceChildren(title, ...made);
  rebase(main);
  restore(kept);
}

// Where the reader was: the focus, what is unfolded, how far boxes are scrolled.
const BOXES = ".scroll, .picture, pre, textarea";
const FOCUSABLE = `${ROW}, a[href], button, summary, [tabindex]`;

function keep() {
  const places = [...main.querySelectorAll(FOCUSABLE)];
  return {
    focus: places.indexOf(document.activeElement),
    link: document.activeElement?.getAttribute?.("href"),
    open: [...main.querySelectorAll("details")].map((one) => one.open),
    boxes: [...main.querySelectorAll(BOXES)].map((one) => [one.scrollLeft, one.scrollTop]),
  };
}

function restore({ focus, link, open, boxes }) {
  main.querySelectorAll("details").forEach((one, at) => (one.open = open[at] ?? one.open));
  main.querySelectorAll(BOXES).forEach((one, at) => {
    if (boxes[at]) [one.scrollLeft, one.scrollTop] = boxes[at];
  });
  if (focus < 0) return;
  const places = [...main.querySelectorAll(FOCUSABLE)];
  const same = link ? places.find((one) => one.getAttribute("href") === link) : null;
  (same ?? places[focus])?.focus({ preventScroll: true });
}

if (main.querySelector("[data-map]")) import("./map.js");

// A browser has six connections to a server for all of its pages: those in the background give theirs back.
if (!here.startsWith("/do/") && !QUIET.includes(here)) {
  addEventListener("focusout", () => isStale && later());
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", ({ persisted }) => persisted && (connect(), later()));
  document.addEventListener("visibilitychange", () => {
    source?.close();
    if (!document.hidden) connect(), later();
  });
  if (!document.hidden) connect();
}
