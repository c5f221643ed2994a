"""The HTML of a gallery's page, with placeholders for its title, note and data."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@TITLE@</title>
<style>
:root { color-scheme: light dark; --ink: #1f2328; --faint: #59636e; --line: #d1d9e0;
  --paper: #ffffff; --tint: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #9da7b1;
  --line: #3d444d; --paper: #0d1117; --tint: #161b22; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 90rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.05rem; margin: 1rem 0 .4rem; }
.note { color: var(--faint); }
.panels { display: flex; flex-wrap: wrap; gap: 1.5rem; }
.panel { flex: 1 1 24rem; min-width: 0; }
canvas { width: 100%; aspect-ratio: 1; border: 1px solid var(--line);
  border-radius: 6px; background: var(--tint); cursor: pointer; display: block; }
.found { display: flex; flex-wrap: wrap; gap: .6rem; margin-top: .6rem; }
.found button { font: inherit; font-size: .75rem; color: inherit; width: 6.5rem;
  border: 1px solid var(--line); border-radius: 6px; background: var(--paper);
  padding: .3rem; cursor: pointer; overflow-wrap: anywhere; }
.found button:first-child { border-color: #d1242f; border-width: 2px; }
.found canvas { width: 4rem; aspect-ratio: auto; margin: 0 auto .2rem; border: 0;
  border-radius: 0; image-rendering: pixelated; }
</style>
</head>
<body>
<main>
<h1>@TITLE@</h1>
<p class="note">@NOTE@</p>
<p class="note">Click on an image: it is framed in every map, and below stand the images
that are most similar to it, the nearest first. What is near in a map is similar;
distances between groups mean nothing.</p>
<div class="panels" id="panels"></div>
</main>
<script id="data" type="application/json">@DATA@</script>
<script>
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const [width, height] = data.tile;
const side = Math.ceil(Math.sqrt(data.names.length));
const sheet = new Image();
const SIZE = 1100, MARGIN = 34;
const shown = Math.max(22, Math.min(48, 900 / Math.sqrt(data.names.length)));
let chosen = 0;

function tile(context, k, x, y, w, h) {
  context.imageSmoothingEnabled = false;
  context.drawImage(sheet, (k % side) * width, Math.floor(k / side) * height,
    width, height, x, y, w, h);
}
function place(panel, k) {
  const room = SIZE - 2 * MARGIN;
  const [x, y] = panel.places[k];
  return [MARGIN + x * room, MARGIN + (1 - y) * room];
}
function frame(context, panel, k, color) {
  const [x, y] = place(panel, k);
  const w = shown * 1.5, h = w * height / width;
  tile(context, k, x - w / 2, y - h / 2, w, h);
  context.lineWidth = 4;
  context.strokeStyle = color;
  context.strokeRect(x - w / 2, y - h / 2, w, h);
}
function draw() {
  for (const panel of data.panels) {
    const context = panel.canvas.getContext('2d');
    context.clearRect(0, 0, SIZE, SIZE);
    const h = shown * height / width;
    for (let k = 0; k < data.names.length; k++) {
      const [x, y] = place(panel, k);
      tile(context, k, x - shown / 2, y - h / 2, shown, h);
    }
    for (const k of [...panel.neighbours[chosen]].reverse()) {
      frame(context, panel, k, '#0969da');
    }
    frame(context, panel, chosen, '#d1242f');
    panel.found.replaceChildren(
      ...[chosen, ...panel.neighbours[chosen]].map(button));
  }
}
function button(k) {
  const made = document.createElement('button');
  const picture = document.createElement('canvas');
  picture.width = width;
  picture.height = height;
  tile(picture.getContext('2d'), k, 0, 0, width, height);
  made.append(picture, data.names[k]);
  made.addEventListener('click', () => choose(k));
  return made;
}
function choose(k) { chosen = k; draw(); }

for (const panel of data.panels) {
  const section = document.createElement('section');
  section.className = 'panel';
  const title = document.createElement('h2');
  title.textContent = panel.title;
  panel.canvas = document.createElement('canvas');
  panel.canvas.width = panel.canvas.height = SIZE;
  panel.canvas.setAttribute('aria-label', 'Map of images by ' + panel.title);
  panel.found = document.createElement('div');
  panel.found.className = 'found';
  panel.canvas.addEventListener('click', (event) => {
    const box = panel.canvas.getBoundingClientRect();
    const at = [(event.clientX - box.left) / box.width * SIZE,
      (event.clientY - box.top) / box.height * SIZE];
    let best = 0, least = Infinity;
    for (let k = 0; k < data.names.length; k++) {
      const [x, y] = place(panel, k);
      const distance = (x - at[0]) ** 2 + (y - at[1]) ** 2;
      if (distance < least) { least = distance; best = k; }
    }
    choose(best);
  });
  section.append(title, panel.canvas, panel.found);
  document.getElementById('panels').append(section);
}
sheet.addEventListener('load', draw);
sheet.src = data.sprite;
</script>
</body>
</html>
"""


def fill(title: str, note: str, data: str) -> str:
  """Returns the page.

  Args:
    title: As HTML.
    note: As HTML.
    data: JSON without any `<`.
  """
  head, tail = _PAGE.split('@DATA@')
  return head.replace('@TITLE@', title).replace('@NOTE@', note) + data + tail
