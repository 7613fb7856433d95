// The MCP App (extension io.modelcontextprotocol/ui, 2026-01-26): speaks with the host by messages, shows the pages that
// the tool `memory_view` returns, and changes nothing. `app_file` puts it into one file with `build.js`.

import { build } from "./build.js";

const INLINE = 640; // pixels: a longer page scrolls inside the conversation
const PATIENCE = 60_000; // milliseconds
const root = document.documentElement;
const part = (id) => document.getElementById(id);
const view = part("view");

// --- messages ---------------------------------------------------------------------------------------

const waiting = new Map();
let asked = 0;

function post(message) {
  parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
}

function ask(method, params) {
  const id = ++asked;
  return new Promise((resolve, reject) => {
    const clock = setTimeout(() => settle(id, { error: { message: view.dataset.silent } }), PATIENCE);
    waiting.set(id, { resolve, reject, clock });
    post({ id, method, params });
  });
}

function settle(id, { result, error }) {
  const question = waiting.get(id);
  if (!question) return;
  waiting.delete(id);
  clearTimeout(question.clock);
  if (error) question.reject(new Error(error.message));
  else question.resolve(result ?? {});
}

addEventListener("message", ({ source, data }) => {
  if (source !== parent || data?.jsonrpc !== "2.0") return;
  if (data.method === undefined) settle(data.id, data);
  else if (data.id === undefined) heard[data.method]?.(data.params ?? {});
  else if (data.method === "ping" || data.method === "ui/resource-teardown") post({ id: data.id, result: {} });
  else post({ id: data.id, error: { code: -32601, message: "no such method" } });
});

const heard = {
  __proto__: null,
  "ui/notifications/tool-input": ({ arguments: given }) => (host.what = given?.what),
  "ui/notifications/tool-result": begin,
  "ui/notifications/tool-cancelled": () => say(view.dataset.cancelled),
  "ui/notifications/host-context-changed": adopt,
};

// --- the host ---------------------------------------------------------------------------------------

const host = { context: {}, tools: false, messages: false, what: undefined };

function adopt(changed) {
  const context = Object.assign(host.context, changed);
  if (context.theme) root.dataset.theme = root.style.colorScheme = context.theme;
  for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
    if (name.startsWith("--") && value) root.style.setProperty(name, value);
  }
  for (const [side, room] of Object.entries(context.safeAreaInsets ?? {})) {
    root.style.setProperty(`--safe-${side}`, `${Number(room)}px`);
  }
  const wide = context.displayMode === "fullscreen";
  const button = part("wide");
  button.hidden = !wide && !context.availableDisplayModes?.includes("fullscreen");
  button.dataset.more ??= button.title;
  button.title = button.ariaLabel = wide ? button.dataset.less : button.dataset.more;
  if (host.isOpen) tellSize();
}

function tellSize() {
  const { height, maxHeight = Infinity } = host.context.containerDimensions ?? {};
  const most = host.context.displayMode === "fullscreen" ? Infinity : INLINE;
  const tall = height ?? Math.min(maxHeight, most, Math.ceil(document.body.getBoundingClientRect().height));
  post({ method: "ui/notifications/size-changed", params: { width: root.clientWidth, height: tall } });
}

async function widen() {
  const mode = host.context.displayMode === "fullscreen" ? "inline" : "fullscreen";
  try {
    adopt({ displayMode: (await ask("ui/request-display-mode", { mode })).mode ?? mode });
  } catch {
    part("wide").hidden = true; // the host announced what it does not do
  }
}

// --- pages ------------------------------------------------------------------------------------------

const past = []; // of { path, y }
let here; // the path of the page that is shown
let latest = 0;

function begin({ structuredContent, _meta, isError, content }) {
  if (isError) say(textOf(content));
  else open(structuredContent?.path ?? _meta?.["mcp-memory/path"] ?? host.what ?? "/", { mayFocus: false });
}

async function open(path, { back = false, y = 0, mayFocus = true } = {}) {
  if (!host.tools) return say(view.dataset.closed);
  const mine = ++latest;
  view.setAttribute("aria-busy", "true");
  try {
    const [bare, place] = path.split("#", 2);
    const answer = await ask("tools/call", { name: "memory_view", arguments: { path: bare, zone: host.context.timeZone } });
    if (mine !== latest) return;
    if (answer.isError) throw new Error(textOf(answer.content));
    const page = answer.structuredContent;
    const made = [heading(page.title), ...page.tree.map((tree) => build(tree))];
    if (here !== undefined && !back) past.push({ path: here, y: scrollY });
    here = page.path;
    show(made);
    settleView(place, y, mayFocus);
  } catch (error) {
    if (mine === latest) say(error.message);
  }
}

function heading(text) {
  const title = document.createElement("h1");
  title.textContent = text;
  title.dir = "auto";
  title.tabIndex = -1;
  return title;
}

function show(nodes) {
  view.replaceChildren(...nodes);
  view.removeAttribute("aria-busy");
  part("back").hidden = past.length === 0;
  const path = here?.split("?")[0];
  for (const entry of document.querySelectorAll(".bar nav a")) {
    if (entry.getAttribute("href") === path) entry.setAttribute("aria-current", "page");
    else entry.removeAttribute("aria-current");
  }
}

function settleView(place, y, mayFocus) {
  const target = place && part(place);
  if (target) target.scrollIntoView();
  else scrollTo(0, y);
  if (mayFocus) view.querySelector("h1").focus({ preventScroll: true });
}

function say(text) {
  const line = document.createElement("p");
  line.textContent = text;
  line.className = "note warn";
  line.setAttribute("role", "status");
  show([line]);
}

function textOf(content) {
  return (content ?? []).map((block) => block.text ?? "").join("\n");
}

function resolve(address) {
  const base = (here ?? "/").split("?")[0];
  return address.startsWith("/") ? address : base + address;
}

function goBack() {
  const last = past.pop();
  if (last) open(last.path, { back: true, y: last.y });
}

// A frame may be forbidden to submit forms, and then says nothing: so buttons and Enter are heard themselves.
function submit(form, button) {
  if (form.dataset.message) return handOver(form);
  if ((form.getAttribute("method") ?? "get").toLowerCase() !== "get") return;
  const given = new FormData(form);
  if (button?.name) given.append(button.name, button.value);
  const query = new URLSearchParams([...given].filter(([, value]) => value !== ""));
  const [path, place] = resolve(form.getAttribute("action") ?? "").split("#", 2);
  open(`${path.split("?")[0]}?${query}${place ? `#${place}` : ""}`);
}

// Hands a correction to the conversation, whose agent makes it; where the host takes no messages, the reader copies it.
async function handOver(form) {
  const text = form.dataset.message + (form.elements.text?.value.trim() ?? "");
  const done = document.createElement("div");
  const line = document.createElement("p");
  line.setAttribute("role", "status");
  done.append(line);
  if (await sent(text)) {
    line.textContent = view.dataset.sent;
  } else {
    const words = document.createElement("textarea");
    words.readOnly = true;
    words.rows = 4;
    words.value = text;
    words.setAttribute("aria-label", view.dataset.copy);
    done.append(words);
    line.textContent = await copied(text) ? view.dataset.copied : view.dataset.copy;
  }
  form.parentElement.replaceChildren(done);
  done.querySelector("textarea")?.select();
}

async function sent(text) {
  if (!host.messages) return false;
  const message = { role: "user", content: [{ type: "text", text }] };
  return ask("ui/message", message).then(({ isError }) => !isError, () => false);
}

async function copied(text) {
  return Promise.resolve(navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => true, () => false);
}

// --- the reader -------------------------------------------------------------------------------------

const ROW = "[data-rows] > *";

addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const button = event.target.closest("button, input[type=submit]");
  if (link) {
    event.preventDefault();
    const address = link.getAttribute("href");
    if (address.startsWith("#")) part(address.slice(1))?.scrollIntoView();
    else open(resolve(address));
  } else if (button?.form && button.type === "submit") {
    event.preventDefault();
    submit(button.form, button);
  }
});

addEventListener("submit", (event) => event.preventDefault());
part("back").addEventListener("click", goBack);
part("wide").addEventListener("click", widen);

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const field = event.target.closest?.("input, textarea, select");
  if (field) {
    if (event.key === "Escape") field.blur();
    else if (event.key === "Enter" && field.form && field.tagName === "INPUT") {
      event.preventDefault();
      submit(field.form, field.form.querySelector("button"));
    }
  } else if (press(event.key, event.target)) event.preventDefault();
});

function press(key, target) {
  if (key === "/") part("search").focus();
  else if (key === "j" || key === "k") walk(key === "j" ? 1 : -1);
  else if (key === "Enter" && target.matches?.(ROW)) target.querySelector("a[href]")?.click();
  else return /^[a-z]$/.test(key) && pressOwn(key);
  return true;
}

// What has a key of its own: in the row with the focus, else on the page where only one has it; `e` opens evidence.
function pressOwn(key) {
  const row = document.activeElement?.closest?.(ROW);
  const own = `[data-key="${key}"]`;
  const all = view.querySelectorAll(own);
  const quote = ".quote a[href]";
  const chosen = row?.querySelector(own) ?? (key === "e" || all.length === 1 ? all[0] : null)
    ?? (key === "e" ? row?.querySelector(quote) ?? view.querySelector(quote) : null);
  chosen?.click();
  return Boolean(chosen);
}

function walk(step) {
  const rows = [...view.querySelectorAll(ROW)];
  const at = rows.indexOf(document.activeElement?.closest?.(ROW));
  rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step))]?.focus();
}

// --- the beginning ----------------------------------------------------------------------------------

ask("ui/initialize", {
  protocolVersion: "2026-01-26",
  appInfo: { name: "mcp-memory", version: "1" },
  appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
}).then(({ hostCapabilities, hostContext }) => {
  host.tools = Boolean(hostCapabilities?.serverTools);
  host.messages = Boolean(hostCapabilities?.message);
  adopt(hostContext ?? {});
  post({ method: "ui/notifications/initialized", params: {} });
  host.isOpen = true;
  new ResizeObserver(tellSize).observe(document.body);
}, (error) => say(error.message));
