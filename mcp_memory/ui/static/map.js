// Draws all spots of /map.json instead of the largest, and lets the reader zoom, pan and move through time. Positions,
// radii and colours are the server's.

import { build } from "./build.js";
import { ask, base, main, rebase } from "./page.js";

const SVG = "http://www.w3.org/2000/svg";
const LABEL = 12.5, LARGE = 11, NEW_DAYS = 7; // as in pictures/map.py
const MOST_LABELS = 60, TRIED = 240; // spots tried for a label
const SIDES = [[0, 1], [0, -1], [1, 0], [-1, 0], [1, -1], [-1, -1], [1, 1], [-1, 1]]; // where it may be
const EPOCH = 719163; // the ordinal of 1 January 1970
const TABBED = 150; // spots; the others are reached by the pointer, and in the table
const CLOSEST = 24; // times
const SETTLED = 90; // milliseconds after the last zoom
const measure = document.createElement("canvas").getContext("2d");
const at = { zoom: 1, x: 0.5, y: 0.5 }; // the centre of what is shown, as a part of the box; kept on a refresh

const set = (node, values) => Object.entries(values).forEach(([name, value]) => node.setAttribute(name, value));
const within = (least, value, most) => Math.min(most, Math.max(least, value));

function make(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  set(node, attributes);
  node.append(...children);
  return node;
}

async function start(figure) {
  const data = await load();
  if (data && figure.isConnected) draw(figure, data);
}

const load = () => fetch(`${base}/map.json${location.search}`).then((answer) => answer.ok && answer.json());

function draw(figure, { box: [left, top, width, height], spots, lines }) {
  const frame = figure.querySelector(".picture");
  const svg = frame.querySelector("svg");
  const slider = main.querySelector("[name=day]");
  const date = main.querySelector("[name=on]");
  const paths = [1, 2, 3].map((wide) => make("path", { class: `w${wide}` }));
  const lit = make("path", { class: "lit" });
  const labels = make("g", { class: "labels", "aria-hidden": "true" });
  measure.font = `${LABEL}px ${getComputedStyle(document.body).fontFamily}`;

  const all = spots.map(([name, label, address, about, x, y, radius, colour, topic, begun, until]) => {
    const href = base + (address || `/entity/${encodeURIComponent(name)}`);
    const shape = make(topic ? "rect" : "circle");
    const node = make("a", { href }, make("title"), shape);
    const text = make("text");
    text.textContent = label || name;
    return { href, node, shape, text, x, y, colour, topic, begun, until, drawn: radius, beside: [] };
  });
  const byAddress = new Map(all.map((spot) => [spot.href, spot]));
  let largest; // the oldest of equals first
  weigh(spots);
  for (const { node } of largest.slice(TABBED)) node.setAttribute("tabindex", "-1");
  for (const line of lines) for (const end of [line[0], line[1]]) all[end].beside.push(line);
  svg.replaceChildren(
    svg.querySelector("title"),
    make("g", { class: lines.length > 900 ? "links many" : "links" }, ...paths, lit),
    make("g", {}, ...largest.map(({ node }) => node)),
    labels,
  );
  const first = Math.min(...spots.map((spot) => spot[9]));
  let day, marked, scale, clock, waits, touches;

  function weigh(spots) {
    spots.forEach(([name, , , about, , , radius], at) => {
      const { node, text } = Object.assign(all[at], { radius });
      node.firstChild.textContent = `${name}: ${about}`;
      text.classList.toggle("large", radius > LARGE);
    });
    largest = [...all].sort((a, b) => b.radius - a.radius);
  }

  // --- time ---

  const isOn = (begun, until) => begun <= day && (!until || day < until);
  const pathOf = ([a, b]) => `M${all[a].x} ${all[a].y}L${all[b].x} ${all[b].y}`;

  function showDay(chosen) {
    day = chosen ?? (slider ? Number(slider.value) : Number.MAX_SAFE_INTEGER);
    for (const spot of all) {
      spot.isOn = isOn(spot.begun, spot.until);
      const isNew = slider && day - spot.begun < NEW_DAYS && day - first >= NEW_DAYS;
      set(spot.node, { class: `spot c${spot.colour}${spot.topic ? " topic" : ""}${isNew ? " new" : ""}` });
      spot.node.toggleAttribute("data-off", !spot.isOn);
    }
    const shown = lines.filter(([, , , begun, until]) => isOn(begun, until));
    paths.forEach((path, wide) => {
      path.setAttribute("d", shown.filter((line) => line[2] === wide + 1).map(pathOf).join(""));
    });
    for (const row of main.querySelectorAll("#names tbody tr")) {
      row.hidden = !(byAddress.get(row.querySelector("a").pathname)?.isOn ?? true);
    }
    if (slider) date.value = new Date((day - EPOCH) * 864e5).toISOString().slice(0, 10);
    mark(null);
    showLabels();
  }

  function chooseDate() {
    if (!date.checkValidity()) return;
    showDay((slider.value = Date.parse(date.value) / 864e5 + EPOCH));
    follow();
  }

  // Gets words and sizes as of the day.
  async function follow() {
    const address = day < slider.max ? `?day=${day}` : location.pathname;
    history.replaceState(null, "", address);
    const [answer, data] = await Promise.all([ask(), load()]);
    const page = answer.ok && build(["div", {}, (await answer.json()).body]);
    if (!page || !location.href.endsWith(address)) return;
    if (data.spots?.length === all.length) weigh(data.spots), settle();
    rebase(page);
    for (const part of [".lead", "#names"]) main.querySelector(part).replaceWith(page.querySelector(part));
  }

  // Marks a spot with those that are mentioned with it; null marks none.
  function mark(spot) {
    if (marked === spot) return;
    marked = spot;
    const beside = spot ? spot.beside.filter(([, , , begun, until]) => isOn(begun, until)) : [];
    const near = new Set(spot ? [spot, ...beside.flatMap(([a, b]) => [all[a], all[b]])] : []);
    for (const { node, text, isLit = near.has(byAddress.get(node.href.baseVal)) } of all) {
      node.classList.toggle("lit", isLit);
      text.classList.toggle("lit", isLit);
    }
    svg.toggleAttribute("data-marked", Boolean(spot));
    lit.setAttribute("d", beside.map(pathOf).join(""));
    showLabels([...near]);
  }

  // --- labels ---

  function showLabels(first = []) {
    const high = (LABEL + 3.5) / scale / 2;
    const half = { x: svg.clientWidth / scale / 2, y: svg.clientHeight / scale / 2 };
    const centre = { x: left + at.x * width, y: top + at.y * height };
    const isSeen = ({ x, y, isOn }) => isOn && Math.abs(x - centre.x) < half.x && Math.abs(y - centre.y) < half.y;
    const seen = [...new Set([...first, ...largest])].filter(isSeen);
    const taken = seen.slice(0, MOST_LABELS).map(({ x, y, drawn }) => [x, y, drawn, drawn]);
    const chosen = new Set();
    for (const spot of seen.slice(0, TRIED)) {
      if (chosen.size >= MOST_LABELS) break;
      spot.wide ??= measure.measureText(spot.text.textContent).width / 2 + 3;
      const wide = spot.wide / scale;
      const edge = half.x - wide;
      for (const [right, down] of SIDES) {
        const beside = spot.x + right * (wide + (down ? 0 : 1.01 * spot.drawn));
        const x = right ? beside : within(centre.x - edge, beside, centre.x + edge);
        const y = spot.y + down * (1.01 * spot.drawn + high);
        const isFree = ([a, b, w, h]) => Math.abs(x - a) >= wide + w || Math.abs(y - b) >= high + h;
        if (Math.abs(x - centre.x) > edge || !taken.every(isFree)) continue;
        taken.push([x, y, wide, high]);
        chosen.add(spot);
        set(spot.text, { x, y: y + 4 / scale });
        break;
      }
    }
    labels.replaceChildren(...[...chosen].map(({ text }) => text));
  }

  // --- zooming and panning ---

  const fitted = () => Math.min(svg.clientWidth / width, svg.clientHeight / height) || 1;

  function show() {
    waits = false;
    const part = 1 / at.zoom;
    for (const axis of ["x", "y"]) at[axis] = part < 1 ? within(part / 4, at[axis], 1 - part / 4) : 0.5;
    const corner = [left + (at.x - part / 2) * width, top + (at.y - part / 2) * height];
    svg.setAttribute("viewBox", [...corner, width * part, height * part].join(" "));
    scale = fitted() * at.zoom;
    svg.style.fontSize = `${LABEL / scale}px`;
    frame.toggleAttribute("data-zoomed", at.zoom > 1);
    for (const button of figure.querySelectorAll("[data-zoom]")) {
      button.disabled = button.dataset.zoom === "in" ? at.zoom >= CLOSEST : at.zoom <= 1;
    }
    showLabels();
    clearTimeout(clock);
    clock = setTimeout(settle, SETTLED);
  }

  // Gives spots and lines their size at this zoom, which takes too long for each frame. Spots grow by its root.
  function settle() {
    svg.style.setProperty("--line", `${1 / scale}px`);
    for (const spot of all) {
      const { shape, topic, x, y } = spot, drawn = (spot.drawn = spot.radius / Math.sqrt(scale));
      set(shape, topic
        ? { x: x - drawn, y: y - drawn, width: 2 * drawn, height: 2 * drawn, rx: drawn / 2.5 }
        : { cx: x, cy: y, r: drawn });
    }
    showLabels();
  }

  function soon() {
    if (!waits) requestAnimationFrame(show);
    waits = true;
  }

  // Zooms so that what is at these coordinates of the window stays there. Returns false where that is not possible.
  function zoom(by, x, y) {
    const before = at.zoom;
    at.zoom = within(1, before * by, CLOSEST);
    if (x !== undefined) {
      const rect = svg.getBoundingClientRect();
      const shift = (1 / before - 1 / at.zoom) / fitted();
      at.x += ((x - rect.x - rect.width / 2) * shift) / width;
      at.y += ((y - rect.y - rect.height / 2) * shift) / height;
    }
    soon();
    return at.zoom !== before;
  }

  function pan(x, y) {
    at.x -= x / (fitted() * at.zoom * width);
    at.y -= y / (fitted() * at.zoom * height);
    soon();
  }

  function fit() {
    figure.style.maxWidth = `${Math.max(480, 1.25 * width)}px`;
    const most = Math.max(280, (frame.clientWidth * height) / width);
    frame.style.height = `${Math.min(1.25 * height, 0.74 * innerHeight, most)}px`;
    show();
    settle();
  }

  // --- the reader ---

  const acts = {
    __proto__: null,
    in: () => zoom(1.5),
    out: () => zoom(1 / 1.5),
    all: () => zoom(0),
  };
  const keys = {
    __proto__: null,
    "+": acts.in, "=": acts.in, "-": acts.out, 0: acts.all,
    ArrowLeft: () => pan(60, 0), ArrowRight: () => pan(-60, 0), ArrowUp: () => pan(0, 60), ArrowDown: () => pan(0, -60),
  };
  const pointers = new Map();
  const spotAt = ({ target }) => byAddress.get(target.closest?.("a")?.href.baseVal) ?? null;
  let moved = 0;

  function dragged(event) {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const [x, y] = [event.clientX, event.clientY];
    moved += Math.hypot(x - last.clientX, y - last.clientY);
    pointers.set(event.pointerId, event);
    const other = [...pointers.values()].find((one) => one !== event);
    const far = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
    if (other) zoom(far(event) / far(last), (x + other.clientX) / 2, (y + other.clientY) / 2);
    else if (at.zoom > 1) {
      if (moved > 5) frame.setPointerCapture(event.pointerId);
      pan(x - last.clientX, y - last.clientY);
    }
  }

  const heard = {
    wheel(event) {
      const speed = event.ctrlKey ? 0.012 : 0.0022; // with ctrl, it is a pinch on a trackpad
      if (zoom(Math.exp(-event.deltaY * speed), event.clientX, event.clientY)) event.preventDefault();
    },
    pointerdown(event) {
      if (event.button) return;
      touches = event.pointerType === "touch";
      pointers.set(event.pointerId, event);
      moved = 0;
    },
    pointermove: dragged,
    pointerup: ({ pointerId }) => pointers.delete(pointerId),
    pointercancel: ({ pointerId }) => pointers.delete(pointerId),
    pointerover: (event) => pointers.size || event.pointerType === "touch" || mark(spotAt(event)),
    pointerleave(event) {
      if (!frame.hasPointerCapture(event.pointerId)) pointers.delete(event.pointerId);
      if (event.pointerType !== "touch") mark(null);
    },
    dragstart: (event) => event.preventDefault(),
    focusin(event) {
      const spot = event.target.matches(":focus-visible") ? spotAt(event) : null;
      if (spot && at.zoom > 1) {
        Object.assign(at, { x: (spot.x - left) / width, y: (spot.y - top) / height });
        show();
      }
      mark(spot);
    },
    focusout: () => mark(null),
    keydown(event) {
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      if (!isPlain || !(event.key in keys) || (at.zoom === 1 && event.key.startsWith("Arrow"))) return;
      event.preventDefault();
      keys[event.key]();
    },
  };
  for (const [name, hear] of Object.entries(heard)) frame.addEventListener(name, hear, { passive: false });
  frame.addEventListener("click", (event) => {
    const spot = touches ? spotAt(event) : marked; // the first touch names a spot, the second opens it
    if (moved > 5 || spot !== marked) event.preventDefault();
    mark(spot);
  }, true);
  for (const button of figure.querySelectorAll("[data-zoom]")) {
    button.hidden = false;
    button.addEventListener("click", acts[button.dataset.zoom]);
  }
  slider?.addEventListener("input", () => showDay());
  slider?.addEventListener("change", follow);
  date?.addEventListener("change", chooseDate);
  figure.dataset.live = "";
  if (slider) slider.form.dataset.live = "";
  new ResizeObserver(fit).observe(figure);
  fit();
  showDay();
}

function look() {
  const figure = main.querySelector("[data-map]:not([data-live])");
  if (figure) start(figure);
}

new MutationObserver(look).observe(main, { childList: true });
look();
