// Builds the JSON tree of a page (`elements.tree` in Python) as nodes of the document, from the same tags and attributes
// that `elements.el` allows: nothing else is ever made, and texts stay texts. `tests/ui/test_mcp_app.py` compares the
// lists with Python's. The App is built with it; the page may use it for parts that it gets as JSON.

const HTML = "http://www.w3.org/1999/xhtml";
const SVG = "http://www.w3.org/2000/svg";
const words = (text) => new Set(text.trim().split(/\s+/));

export const TAGS_HTML = words(`
    a abbr article aside b blockquote br button caption code dd del details dialog div dl dt em fieldset figcaption
    figure footer form h1 h2 h3 h4 header hr i input ins label legend li main mark meter nav ol optgroup option
    output p pre progress s samp section select small span strong sub summary sup table tbody td textarea tfoot th
    thead time tr u ul var wbr`);
export const TAGS_SVG = words("a svg g path rect circle line polyline polygon text tspan title desc defs marker");
export const ATTRIBUTES = words(`
    abbr action autocomplete autofocus checked cite class cols colspan datetime dir disabled download enctype for form
    headers hidden high href id inputmode lang list low max maxlength method min minlength multiple name open optimum
    pattern placeholder popover popovertarget readonly rel required role rowspan rows scope selected size span
    spellcheck start step tabindex title translate type value
    cx cy d dominant-baseline dx dy fill height marker-end markerHeight markerWidth orient points preserveAspectRatio
    r refX refY rx ry stroke stroke-dasharray stroke-width text-anchor transform viewBox width x x1 x2 y y1 y2`);
const ADDRESSES = words("href action cite");
const INPUTS = words("checkbox date datetime-local hidden number radio range search text");
const OWN = /^(?:(?:\/(?![/\\])|\?|#)[^\x00-\x20\\]*)?$/;
const PREFIXED = /^(?:aria|data)-[a-z0-9-]+$/;
const DEEPEST = 200;

// Returns the node of a tree: a text, or [tag, {attributes}, [children]]. Throws where a tree has what no page may have.
export function build(tree, within = HTML, depth = 0) {
  if (typeof tree === "string") return document.createTextNode(tree);
  if (!Array.isArray(tree) || depth > DEEPEST) throw new Error("This is no page.");
  const [tag, attributes, children] = tree;
  const space = tag === "svg" ? SVG : within;
  if (!(space === SVG ? TAGS_SVG : TAGS_HTML).has(tag)) throw new Error(`No page has <${tag}>.`);
  const node = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (!allowed(tag, name, value)) throw new Error(`No <${tag}> has ${name}="${value}".`);
    node.setAttribute(name, value);
  }
  for (const child of children) node.append(build(child, space, depth + 1));
  return node;
}

function allowed(tag, name, value) {
  if (typeof value !== "string" || !(ATTRIBUTES.has(name) || PREFIXED.test(name))) return false;
  if (ADDRESSES.has(name)) return OWN.test(value);
  return !(tag === "input" && name === "type") || INPUTS.has(value);
}

// Names the reader's time zone to the server, which writes the times of the pages (`ui/times.py`).
export function tellZone(path) {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  if (timeZone) document.cookie = `mcp-memory-zone=${timeZone}; path=${path}; max-age=31536000; samesite=strict`;
}
