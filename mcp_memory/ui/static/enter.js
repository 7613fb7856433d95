// Takes the key out of the fragment of the address, and posts it: it never stands in a request's path, nor in the history.
// Without a key, goes on to the page that was asked for once this browser is signed in, as by another tab.

import { tellZone } from "./build.js";

const form = document.getElementById("entry");
const action = form && new URL(form.action);
const base = action?.pathname.replace(/\.enter$/, "");
const to = action?.searchParams.get("to");
const key = location.hash.slice(1);
if (form) tellZone(base);
if (key) history.replaceState(null, "", location.pathname + location.search);
if (form && /^[A-Za-z0-9_-]{72}$/.test(key)) {
  form.elements.key.value = key;
  form.requestSubmit();
} else if (form) {
  form.elements.key.focus();
  if (to) {
    document.addEventListener("visibilitychange", goOn);
    goOn();
  }
}

async function goOn() {
  if (document.hidden || form.elements.key.value) return;
  const page = base + to.slice(1);
  const answer = await fetch(page, { method: "HEAD", headers: { "mcp-memory-refresh": "1" } }).catch(() => null);
  if (answer?.ok) location.replace(page);
}
