// What an accessibility checker does not see: pages that scroll sideways, pictures without area, texts that are cut off
// or lie over each other. Runs in a world of its own beside the page's.

const SLACK = 1.5;

function named(element) {
  const classes = [...element.classList].map(name => "." + name).join("");
  const text = (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
  return `${element.tagName.toLowerCase()}${classes} "${text}"`;
}

function shown(element) {
  return element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
}

// Within something that scrolls by itself, which is how wide tables and pictures may be.
function scrolls(element, axis = "X") {
  for (let up = element; up && up !== document.body; up = up.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(up)["overflow" + axis])) return up;
  }
  return null;
}

// For screen readers only: one pixel large, or clipped away, on purpose.
function unseen(element) {
  for (let up = element; up && up !== document.body; up = up.parentElement) {
    const style = getComputedStyle(up), box = up.getBoundingClientRect();
    if (style.clipPath !== "none" && style.position === "absolute") return true;
    if (style.position === "absolute" && (box.width <= 1.5 || box.bottom <= 0)) return true;
  }
  return false;
}

function* sideways() {
  const width = document.documentElement.clientWidth;
  if (document.scrollingElement.scrollWidth <= width) return;
  yield `the page is ${document.scrollingElement.scrollWidth} px wide in a window of ${width}`;
  for (const element of document.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (box.right > width + SLACK && !scrolls(element.parentElement) && shown(element) && !element.closest("svg svg, svg *"))
      yield `reaches to ${Math.round(box.right)} px: ${named(element)}`;
  }
}

function* pictures() {
  const width = document.documentElement.clientWidth;
  for (const svg of document.querySelectorAll("svg[role=img]")) {
    if (!shown(svg)) continue;
    const box = svg.getBoundingClientRect(), drawn = svg.getBBox();
    if (box.width < 8 || box.height < 4) yield `a picture of ${box.width} by ${box.height} px: ${named(svg)}`;
    if (drawn.width < 1 && drawn.height < 1) yield `a picture of nothing: ${named(svg)}`;
    if (!scrolls(svg) && (box.left < -SLACK || box.right > width + SLACK)) yield `a picture outside the window: ${named(svg)}`;
    yield* texts(svg, box);
  }
}

function* texts(svg, box) {
  const words = [...svg.querySelectorAll("text")].filter(text => shown(text) && text.textContent.trim());
  const places = words.map(text => text.getBoundingClientRect());
  for (const [at, place] of places.entries()) {
    if (place.left < box.left - SLACK || place.right > box.right + SLACK || place.top < box.top - SLACK || place.bottom > box.bottom + SLACK)
      yield `a text that leaves its picture: ${named(words[at])}`;
    if (place.height < 7) yield `a text ${place.height.toFixed(1)} px high: ${named(words[at])}`;
    for (let other = at + 1; other < places.length; other++) {
      const one = places[other];
      const across = Math.min(place.right, one.right) - Math.max(place.left, one.left);
      const down = Math.min(place.bottom, one.bottom) - Math.max(place.top, one.top);
      if (across > 2 && down > Math.min(place.height, one.height) * 0.4)
        yield `two texts on each other: ${named(words[at])} and ${named(words[other])}`;
    }
  }
}

function* cut() {
  for (const element of document.body.querySelectorAll("*")) {
    if (element.closest("svg") || !shown(element) || unseen(element)) continue;
    const style = getComputedStyle(element);
    const wide = element.scrollWidth - element.clientWidth, high = element.scrollHeight - element.clientHeight;
    const clips = axis => /hidden|clip/.test(style["overflow" + axis]);
    if (element.tagName === "INPUT" || element.tagName === "TEXTAREA" || element.tagName === "SELECT") continue;
    if (clips("X") && wide > SLACK && !element.title) yield `cut off by ${wide} px at its side: ${named(element)}`;
    if (clips("Y") && high > SLACK + 1) yield `cut off by ${high} px below: ${named(element)}`;
  }
}

// Texts in the flow of the page that lie on each other: two leaves of which neither holds the other.
function* overlaps() {
  const leaves = [...document.body.querySelectorAll("*")].filter(element =>
    !element.closest("svg") && [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())
    && shown(element) && !unseen(element) && !scrolls(element) && getComputedStyle(element).position === "static");
  const boxes = leaves.flatMap(leaf => [...leaf.getClientRects()].map(box => [leaf, box]));
  boxes.sort((one, other) => one[1].top - other[1].top);
  for (const [at, [leaf, box]] of boxes.entries()) {
    for (let next = at + 1; next < boxes.length && boxes[next][1].top < box.bottom; next++) {
      const [other, place] = boxes[next];
      if (leaf.contains(other) || other.contains(leaf)) continue;
      const across = Math.min(box.right, place.right) - Math.max(box.left, place.left);
      const down = Math.min(box.bottom, place.bottom) - Math.max(box.top, place.top);
      if (across > 2 && down > Math.min(box.height, place.height) * 0.5) yield `two texts on each other: ${named(leaf)} and ${named(other)}`;
    }
  }
}

function crooked() {
  return [...sideways(), ...pictures(), ...cut(), ...overlaps()].slice(0, 12);
}
