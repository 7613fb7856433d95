// Takes the key out of the fragment of the address, and posts it: it never stands in a request's path, nor in the history.

import { tellZone } from "./build.js";

const form = document.getElementById("entry");
if (form) tellZone(new URL(form.action).pathname.replace(/\.enter$/, ""));
const key = location.hash.slice(1);
if (key) history.replaceState(null, "", location.pathname);
if (form && /^[A-Za-z0-9_-]{43}$/.test(key)) {
  form.elements.key.value = key;
  form.requestSubmit();
} else {
  form?.elements.key.focus();
}
