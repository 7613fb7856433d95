// Runs the script of the App in a window of a few lines, with a host that answers: `node bridge.mjs SCRIPT PAGES`,
// where PAGES are answers of the tool `memory_view`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import vm from "node:vm";

const SCRIPT = new vm.Script(readFileSync(process.argv[2], "utf-8"));
const PAGES = JSON.parse(readFileSync(process.argv[3], "utf-8"));

class Element {
  constructor(space, tag) {
    Object.assign(this, { space, tag, children: [], attributes: {}, dataset: {}, hidden: false });
    this.style = { set: {}, setProperty: (name, value) => (this.style.set[name] = value) };
  }
  setAttribute(name, value) { this.attributes[name] = value; }
  getAttribute(name) { return this.attributes[name] ?? null; }
  removeAttribute(name) { delete this.attributes[name]; }
  append(...nodes) { this.children.push(...nodes); }
  replaceChildren(...nodes) { this.children = nodes; }
  get all() { return this.children.flatMap((one) => (one instanceof Element ? [one, ...one.all] : [])); }
  get textContent() { return this.children.map((one) => (typeof one === "string" ? one : one.textContent)).join(""); }
  set textContent(text) { this.children = [text]; }
  querySelectorAll(selector) { return selector.startsWith("time") ? this.all.filter((one) => one.tag === "time") : []; }
  querySelector(selector) { return this.all.find((one) => one.tag === selector) ?? null; }
  hasAttribute(name) { return name in this.attributes; }
  get dateTime() { return this.attributes.datetime; }
  addEventListener() {}
  select() {}
  focus() {}
  getBoundingClientRect() { return { height: 321.5 }; }
}

// Starts the App; `sent` is what it posts, `hear` hands it a message of its host.
function started(clipboard) {
  const sent = [], listeners = {}, parts = {};
  const root = Object.assign(new Element("", "html"), { clientWidth: 700 });
  for (const id of ["view", "back", "wide", "search"]) parts[id] = new Element("", id);
  const words = ["closed", "cancelled", "silent", "sent", "copied", "copy"];
  Object.assign(parts.view.dataset, Object.fromEntries(words.map((word) => [word, word])));
  const parent = { postMessage: (message) => sent.push(JSON.parse(JSON.stringify(message))) };
  const window = {
    parent, navigator: { clipboard }, setTimeout: () => 0, clearTimeout() {}, scrollTo() {}, scrollY: 0, URLSearchParams, Intl, Date,
    addEventListener: (type, run) => (listeners[type] = run),
    ResizeObserver: class { constructor(run) { this.run = run; } observe() { this.run(); } },
    document: {
      documentElement: root, body: new Element("", "body"), querySelectorAll: () => [],
      getElementById: (id) => parts[id] ?? null,
      createElement: (tag) => new Element("http://www.w3.org/1999/xhtml", tag),
      createElementNS: (space, tag) => new Element(space, tag),
      createTextNode: (text) => text,
    },
  };
  SCRIPT.runInContext(vm.createContext(window));
  const hear = async (data, source = parent) => {
    listeners.message({ source, data: { jsonrpc: "2.0", ...data } });
    await new Promise(setImmediate);
  };
  const press = async (form) => {
    const button = Object.assign(new Element("", "button"), { form, type: "submit" });
    const closest = (selector) => (selector.startsWith("button") ? button : null);
    listeners.click({ target: { closest }, preventDefault() {} });
    await new Promise(setImmediate);
  };
  return { sent, hear, press, root, view: parts.view, wide: parts.wide, back: parts.back };
}

const HOST = { hostCapabilities: { serverTools: {}, message: { text: {} } }, hostContext: { theme: "dark", locale: "de", timeZone: "Asia/Tokyo" } };

async function open(tree, host = HOST) {
  const app = started();
  await app.hear({ id: 1, result: host });
  await app.hear({ method: "ui/notifications/tool-result", params: { structuredContent: { path: "/a1" } } });
  if (tree) await app.hear({ id: 2, result: { structuredContent: { title: "A <b>title</b>", path: "/a1", tree } } });
  return app;
}

test("it introduces itself first, and says its size only when it was answered", async () => {
  const app = started();
  assert.deepEqual(app.sent.map(({ id, method }) => [id, method]), [[1, "ui/initialize"]]);
  assert.equal(app.sent[0].params.protocolVersion, "2026-01-26");
  await app.hear({ id: 1, result: HOST });
  assert.deepEqual(app.sent.slice(1).map(({ method, params }) => [method, params]), [
    ["ui/notifications/initialized", {}],
    ["ui/notifications/size-changed", { width: 700, height: 322 }],
  ]);
});

test("a result of the tool opens its page through the tool of the App", async () => {
  const app = await open([["p", { class: "said" }, ["Boats"]], ["svg", { viewBox: "0 0 1 1" }, [["a", { href: "/a2" }, []]]]]);
  assert.deepEqual(app.sent.at(-1).params, { name: "memory_view", arguments: { path: "/a1", zone: "Asia/Tokyo" } });
  assert.deepEqual(app.view.children.map((one) => one.tag), ["h1", "p", "svg"]);
  assert.equal(app.view.children[0].textContent, "A <b>title</b>");
  assert.equal(app.view.children[2].children[0].space, "http://www.w3.org/2000/svg");
  assert.equal(app.back.hidden, true);
});

test("the path comes from the answer's metadata where its structured content was taken out", async () => {
  const app = started();
  await app.hear({ id: 1, result: HOST });
  await app.hear({ method: "ui/notifications/tool-result", params: { _meta: { "mcp-memory/path": "/t3" }, content: [] } });
  assert.equal(app.sent.at(-1).params.arguments.path, "/t3");
});

for (const [what, node] of Object.entries({
  "a script": ["script", {}, ["alert(1)"]],
  "a frame": ["iframe", { srcdoc: "x" }, []],
  "an image": ["img", { src: "x" }, []],
  "a handler": ["p", { onclick: "alert(1)" }, []],
  "an inline style": ["p", { style: "position: fixed" }, []],
  "an address of a script": ["a", { href: "javascript:alert(1)" }, []],
  "an address elsewhere": ["a", { href: "//example.org" }, []],
  "an address elsewhere in a picture": ["svg", {}, [["a", { href: "https://example.org" }, []]]],
  "HTML in a picture": ["svg", {}, [["foreignObject", {}, []]]],
  "a picture's script": ["svg", {}, [["script", {}, []]]],
  "a password": ["input", { type: "password" }, []],
  "no tree": { tag: "p" },
})) {
  test(`nothing of a page with ${what} is shown`, async () => {
    const app = await open([["p", {}, ["first"]], node]);
    assert.deepEqual(app.view.children.map((one) => one.attributes.role), ["status"]);
    assert.equal(app.view.textContent.includes("first"), false);
  });
}

test("only its parent is heard", async () => {
  const app = started();
  await app.hear({ id: 1, result: HOST }, {});
  await app.hear({ id: 9, method: "ping" }, {});
  assert.equal(app.sent.length, 1);
});

test("it answers the host's requests", async () => {
  const app = started();
  await app.hear({ id: "a", method: "ping" });
  await app.hear({ id: "b", method: "ui/resource-teardown", params: {} });
  await app.hear({ id: "c", method: "constructor" });
  assert.deepEqual(app.sent.slice(1).map(({ id, result, error }) => [id, result ?? error.code]), [
    ["a", {}], ["b", {}], ["c", -32601],
  ]);
});

test("what the host says of itself is merged, and its strange names are nothing", async () => {
  const app = await open();
  const styles = { variables: { "--color-text-primary": "#111", color: "red" } };
  await app.hear({ method: "ui/notifications/host-context-changed", params: { styles, availableDisplayModes: ["inline"] } });
  assert.deepEqual([app.root.dataset.theme, app.root.style.set, app.wide.hidden],
    ["dark", { "--color-text-primary": "#111" }, true]);
  await app.hear({ method: "ui/notifications/host-context-changed", params: { theme: "light", availableDisplayModes: ["fullscreen"] } });
  assert.deepEqual([app.root.dataset.theme, app.wide.hidden], ["light", false]);
  await app.hear({ method: "toString" });
});

test("errors, a cancelled call and a host that lets it read nothing are said as text", async () => {
  const failed = await open();
  await failed.hear({ id: 2, result: { isError: true, content: [{ type: "text", text: "There is no <i>a1</i>." }] } });
  assert.equal(failed.view.textContent, "There is no <i>a1</i>.");
  const refused = await open();
  await refused.hear({ id: 2, error: { code: 1, message: "no" } });
  assert.equal(refused.view.textContent, "no");
  const closed = await open(null, { hostCapabilities: {}, hostContext: {} });
  assert.equal(closed.view.textContent, "closed");
  const app = started();
  await app.hear({ method: "ui/notifications/tool-cancelled", params: {} });
  assert.equal(app.view.textContent, "cancelled");
});

// A form as the page of a statement has it, in a box whose contents are read after it was sent.
function correction(value) {
  const box = new Element("", "div"), form = new Element("", "form");
  form.dataset.message = "Statement a1 says “Boats”. It should say: ";
  return Object.assign(form, { parentElement: box, elements: value === undefined ? {} : { text: { value } } });
}

const TEXT = "Statement a1 says “Boats”. It should say: Ships";

test("a correction is handed to the conversation as words of the user", async () => {
  const app = await open([]);
  const form = correction(" Ships ");
  await app.press(form);
  const { id, method, params } = app.sent.at(-1);
  assert.deepEqual([method, params], ["ui/message", { role: "user", content: [{ type: "text", text: TEXT }] }]);
  await app.hear({ id, result: {} });
  assert.equal(form.parentElement.textContent, "sent");
});

for (const [what, answer] of Object.entries({ refuses: { result: { isError: true } }, fails: { error: { code: 1, message: "" } } })) {
  test(`where the host ${what}, the reader can copy the correction`, async () => {
    const app = await open([]);
    const form = correction("Ships");
    await app.press(form);
    await app.hear({ id: app.sent.at(-1).id, ...answer });
    assert.equal(form.parentElement.querySelector("div").querySelector("textarea").value, TEXT);
    assert.equal(form.parentElement.textContent, "copy");
  });
}

test("a host that takes no messages is not asked, and the correction is in the clipboard where that is allowed", async () => {
  const copied = [];
  const app = started({ writeText: async (text) => void copied.push(text) });
  await app.hear({ id: 1, result: { hostCapabilities: { serverTools: {} }, hostContext: {} } });
  const many = app.sent.length, form = correction();
  await app.press(form);
  assert.deepEqual([app.sent.length, copied], [many, ["Statement a1 says “Boats”. It should say: "]]);
  assert.equal(form.parentElement.textContent, "copied");
});

for (const page of PAGES) {
  test(`the page ${page.path} is built as it was sent`, async () => {
    const app = await open();
    await app.hear({ id: 2, result: { structuredContent: page } });
    const sent = (node) => typeof node === "string" ? [] : [node[0], ...node[2].flatMap(sent)];
    assert.deepEqual(app.view.all.map((one) => one.tag), ["h1", ...page.tree.flatMap(sent)], app.view.textContent);
  });
}
