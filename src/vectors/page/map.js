// The map: one dot for each row on a canvas, in the colour of its group; dots of frequent rows are larger and get names first.
// Wheel, pinch, buttons and keys zoom; dragging and arrow keys move; a click shows the row's nearest rows.

const canvas = byId('map'), brush = canvas.getContext('2d'), tip = byId('map-tip');
const mapFont = '12px system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const namesMost = 220, namesTried = 2500, nameLetters = 28, reach = 14;

// The visible part of the map: coordinates p (0..1 in each direction) are drawn at (p - middle) * scale + half of the canvas.
const look = {x: 0.5, y: 0.5, scale: 1, whole: 1};
let mapGroup = -1; // the only group that is shown; -1: all are
let mapColours = {}, mapWidth = 0, mapHeight = 0, mapDue = false, mapChosen = -1, mapOver = -1, mapNear = new Set();
const nameWidths = new Map();

// The rows of each group, rarest first, so that frequent rows are drawn over them; the last entry has the rows without a group.
const groupRows = Array.from({length: data.groups.count + 1}, () => []);
for (let row = data.listed - 1; row >= 0; row--) groupRows[groups[row]].push(row);

function placeX(row) {
  return (places[2 * row] / 65535 - look.x) * look.scale + mapWidth / 2;
}

function placeY(row) {
  return (places[2 * row + 1] / 65535 - look.y) * look.scale + mapHeight / 2;
}

function dotSize(row) {
  const size = (row < data.top ? 1.7 + 2.3 * (1 - row / data.top) ** 3 : 0.9) * Math.min(1, look.whole / 550);
  return size * Math.min(2, Math.sqrt(look.scale / look.whole) * 0.5 + 0.5);
}

function isSeen(x, y) {
  return x > -10 && y > -10 && x < mapWidth + 10 && y < mapHeight + 10;
}

// A canvas cannot use CSS variables, so their colours are read from an element.
function readColours() {
  const probe = element('span', {});
  document.body.append(probe);
  const ofGroups = Array.from({length: data.groups.count}, (_, group) => `group-${group}`);
  for (const name of ['text', 'quiet', 'dot', 'orange', 'page', 'blue', ...ofGroups]) {
    probe.style.color = `var(--${name})`;
    mapColours[name] = getComputedStyle(probe).color;
  }
  probe.remove();
}

// ---- drawing ----

function drawDots(rows, colour, alpha, more) {
  brush.globalAlpha = alpha;
  brush.fillStyle = colour;
  brush.beginPath();
  for (const row of rows) {
    const x = placeX(row), y = placeY(row), size = dotSize(row) + more;
    if (!isSeen(x, y)) continue;
    brush.moveTo(x + size, y);
    brush.arc(x, y, size, 0, 2 * Math.PI);
  }
  brush.fill();
  brush.globalAlpha = 1;
}

function mapName(row) {
  const name = calledOf(row), letters = Array.from(name);
  return letters.length > nameLetters ? `${letters.slice(0, nameLetters - 1).join('')}\u2026` : name;
}

function widthOf(name) {
  if (!nameWidths.has(name)) nameWidths.set(name, brush.measureText(name).width);
  return nameWidths.get(name);
}

// Returns true if only one group is shown and the row is not in it.
function isHidden(row) {
  return mapGroup >= 0 && groups[row] !== mapGroup;
}

// Writes a row's name to the right of its dot, or to the left if that space is used. If both are used, writes it only if it must.
function writeName(row, taken, colour, must) {
  const name = mapName(row), x = placeX(row), y = placeY(row), width = widthOf(name), gap = dotSize(row) + 3;
  if (!isSeen(x, y)) return false;
  for (const from of [x + gap, x - gap - width]) {
    const box = [from - 2, y - 7, from + width + 2, y + 7];
    const free = box[0] >= 0 && box[2] <= mapWidth &&
      !taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
    if (!free && !(must && from > x)) continue;
    taken.push(box);
    brush.strokeStyle = mapColours.page;
    brush.lineWidth = 3;
    brush.strokeText(name, from, y);
    brush.fillStyle = colour;
    brush.fillText(name, from, y);
    return true;
  }
  return false;
}

function writeNames() {
  const taken = [];
  let written = 0, tried = 0;
  brush.font = mapFont;
  brush.textBaseline = 'middle';
  brush.lineJoin = 'round';
  if (mapChosen >= 0) writeName(mapChosen, taken, mapColours.orange, true);
  for (const row of mapNear) writeName(row, taken, mapColours.orange, false);
  for (let row = 0; row < data.listed && written < namesMost && tried < namesTried; row++) {
    if (row === mapChosen || mapNear.has(row) || isHidden(row) || !isSeen(placeX(row), placeY(row))) continue;
    tried++;
    if (writeName(row, taken, mapChosen < 0 ? mapColours.text : mapColours.quiet, false)) written++;
  }
}

function drawMap() {
  mapDue = false;
  const ratio = window.devicePixelRatio || 1;
  brush.setTransform(ratio, 0, 0, ratio, 0, 0);
  brush.clearRect(0, 0, mapWidth, mapHeight);
  for (let group = data.groups.count; group >= 0; group--) {
    const alpha = mapGroup >= 0 && group !== mapGroup ? 0.07 : mapChosen < 0 ? 0.75 : 0.4;
    drawDots(groupRows[group], mapColours[`group-${group}`] || mapColours.dot, alpha, 0);
  }
  drawDots(mapNear, mapColours.orange, 1, 1);
  if (mapChosen >= 0) {
    drawDots([mapChosen], mapColours.page, 1, 4.5);
    drawDots([mapChosen], mapColours.orange, 1, 3);
  }
  writeNames();
}

function redraw() {
  if (!mapDue) requestAnimationFrame(drawMap);
  mapDue = true;
}

// ---- groups ----

// Returns how typical a row is of its group: the sum of cosines of its nearest rows in the group, minus those in other groups.
function typicality(row) {
  return listOf(row).reduce((sum, [other, score]) => sum + (groups[other] === groups[row] ? score : -score), 0);
}

// Returns the name of a group: its label, or three typical rows of a cluster, from the more frequent half of its rows.
function groupName(group) {
  if (data.groups.names.length) return visible(data.groups.names[group]);
  const rows = groupRows[group].filter((row) => row < data.top), frequent = rows.slice(Math.floor(rows.length / 2)).reverse();
  const scored = frequent.map((row) => [typicality(row), row]);
  return scored.sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, 3).map(([, row]) => mapName(row)).join(', ');
}

// Shows only one group; or all groups, if only this one was shown.
function filterGroup(group) {
  mapGroup = mapGroup === group ? -1 : group;
  for (const button of byId('groups').querySelectorAll('button')) {
    button.setAttribute('aria-pressed', Number(button.dataset.group) === mapGroup);
  }
  redraw();
}

function showGroups() {
  const lines = Array.from({length: data.groups.count}, (_, group) => {
    const mark = element('span', {});
    mark.style.background = `var(--group-${group})`;
    const size = element('small', {class: 'quiet'}, whole(groupRows[group].filter((row) => row < data.top).length));
    const button = element('button', {type: 'button', 'aria-pressed': false, 'data-group': group, tabindex: group ? -1 : 0}, mark,
      element('bdi', {}, groupName(group)), size);
    button.addEventListener('click', () => filterGroup(group));
    return element('li', {}, button);
  });
  byId('groups').replaceChildren(...lines);
  byId('groups').addEventListener('keydown', (event) => walkButtons(byId('groups'), event));
}

// ---- looking around ----

function fitMap() {
  let highX = 0, highY = 0;
  for (let i = 0; i < 2 * data.top; i += 2) {
    highX = Math.max(highX, places[i]);
    highY = Math.max(highY, places[i + 1]);
  }
  const margin = 28;
  const across = (mapWidth - 2 * margin) / (highX / 65535 || 1), along = (mapHeight - 2 * margin) / (highY / 65535 || 1);
  look.whole = Math.max(50, Math.min(across, along));
  Object.assign(look, {x: highX / 131070 || 0.5, y: highY / 131070 || 0.5, scale: look.whole});
  redraw();
}

// The point of the map under (x, y) does not move.
function zoomAt(x, y, factor) {
  const scale = Math.min(look.whole * 80, Math.max(look.whole * 0.6, look.scale * factor));
  look.x += (x - mapWidth / 2) * (1 / look.scale - 1 / scale);
  look.y += (y - mapHeight / 2) * (1 / look.scale - 1 / scale);
  look.scale = scale;
  redraw();
}

// Zooms by keys and buttons: around the selected row if it is visible, else around the middle.
function zoomHere(factor) {
  const x = mapChosen < 0 ? -1 : placeX(mapChosen), y = mapChosen < 0 ? -1 : placeY(mapChosen);
  if (x >= 0 && y >= 0 && x <= mapWidth && y <= mapHeight) zoomAt(x, y, factor);
  else zoomAt(mapWidth / 2, mapHeight / 2, factor);
}

function moveMap(byX, byY) {
  look.x -= byX / look.scale;
  look.y -= byY / look.scale;
  redraw();
}

// Shows a row and its nearest rows. Moves the map if the row is not visible.
function pointOut(row, others) {
  mapChosen = row < data.listed && !Number.isNaN(places[2 * row]) ? row : -1;
  mapNear = new Set(others.filter((other) => other < data.listed && other !== row));
  const edge = 20, x = placeX(row), y = placeY(row);
  if (mapChosen >= 0 && mapWidth && !(x > edge && y > edge && x < mapWidth - edge && y < mapHeight - edge)) {
    look.x = places[2 * row] / 65535;
    look.y = places[2 * row + 1] / 65535;
  }
  redraw();
}

function rowAt(x, y) {
  let best = -1, least = reach * reach;
  for (let row = 0; row < data.listed; row++) {
    if (isHidden(row)) continue;
    const distance = (placeX(row) - x) ** 2 + (placeY(row) - y) ** 2;
    if (distance < least) [best, least] = [row, distance];
  }
  return best;
}

function pointAt(x, y) {
  const over = rowAt(x, y);
  canvas.classList.toggle('over', over >= 0);
  tip.hidden = over < 0;
  if (over < 0) return;
  if (over !== mapOver) {
    tip.replaceChildren(element('bdi', {}, calledOf(over)), ` \u00b7 ${whole(data.counts[over])} times`);
  }
  const across = placeX(over), leftwards = across > mapWidth / 2;
  tip.style.top = `${Math.max(0, placeY(over) - 40)}px`;
  tip.style.left = leftwards ? 'auto' : `${across + 8}px`;
  tip.style.right = leftwards ? `${mapWidth - across + 8}px` : 'auto';
  mapOver = over;
}

// ---- pointers, wheel, keys ----

// Positions of the fingers or buttons that are down, by pointer id.
const held = new Map();
let moved = 0;

function whereOf(event) {
  const box = canvas.getBoundingClientRect();
  return {x: event.clientX - box.left, y: event.clientY - box.top};
}

function dragTo(event) {
  const before = held.get(event.pointerId), now = whereOf(event);
  const other = [...held].find(([id]) => id !== event.pointerId);
  moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
  held.set(event.pointerId, now);
  if (!other) {
    moveMap(now.x - before.x, now.y - before.y);
    return;
  }
  const apart = (p) => Math.hypot(p.x - other[1].x, p.y - other[1].y) || 1;
  moveMap((now.x - before.x) / 2, (now.y - before.y) / 2);
  zoomAt((now.x + other[1].x) / 2, (now.y + other[1].y) / 2, apart(now) / apart(before));
}

function listenToPointers(choose) {
  canvas.addEventListener('pointerdown', (event) => {
    if (!held.size) moved = 0;
    held.set(event.pointerId, whereOf(event));
    canvas.setPointerCapture(event.pointerId);
    canvas.classList.add('dragging');
    tip.hidden = true;
  });
  canvas.addEventListener('pointermove', (event) => {
    if (held.has(event.pointerId)) dragTo(event);
    else if (event.pointerType === 'mouse') pointAt(whereOf(event).x, whereOf(event).y);
  });
  const release = (event) => {
    if (!held.delete(event.pointerId)) return;
    if (!held.size) canvas.classList.remove('dragging');
    const {x, y} = whereOf(event), row = event.type === 'pointerup' && !held.size && moved < 6 ? rowAt(x, y) : -1;
    if (row >= 0) choose(row);
  };
  canvas.addEventListener('pointerup', release);
  canvas.addEventListener('pointercancel', release);
  canvas.addEventListener('pointerleave', () => {
    tip.hidden = true;
  });
}

function listenToKeys() {
  const steps = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]};
  const zooms = {'+': 1.4, '=': 1.4, '-': 1 / 1.4};
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (steps[event.key]) moveMap(...steps[event.key]);
    else if (zooms[event.key]) zoomHere(zooms[event.key]);
    else if (event.key === '0') fitMap();
    else return;
    event.preventDefault();
  });
  // The wheel scrolls the page until the map has been used.
  canvas.addEventListener('wheel', (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    const {x, y} = whereOf(event), lines = event.deltaMode === 1 ? 30 : 1;
    zoomAt(x, y, Math.exp(-event.deltaY * lines * 0.0016));
  }, {passive: false});
  byId('map-buttons').addEventListener('click', (event) => {
    const what = event.target.dataset.do;
    if (what === 'all') fitMap();
    else if (what) zoomHere(what === 'in' ? 1.6 : 1 / 1.6);
  });
}

function showMap(choose) {
  readColours();
  canvas.setAttribute('aria-label', `Map of the ${whole(data.top)} most frequent rows`);
  const table = data.table === 'target' ? '' : ` (${data.table})`;
  const how = window.matchMedia('(pointer: coarse)').matches
    ? 'Tap a dot for its nearest rows; drag to move, pinch to zoom.'
    : 'Click a dot for its nearest rows; drag to move; click the map, then turn the wheel to zoom (Ctrl and wheel at once), or ' +
      'use arrows, + and -, 0 for the whole.';
  const coloured = data.groups.by === 'labels' ? 'Colours are labels.'
    : 'Colours are clusters of near rows, named by three typical ones.';
  const rarer = data.listed - data.top;
  byId('map-help').textContent = `The ${whole(data.top)} most frequent of ${whole(data.rows)} rows${table}` +
    `${rarer ? ` and, as smaller dots beside their nearest rows, ${whole(rarer)} rarer ones` : ''}. Rows with a high cosine are ` +
    `near each other on the map (t-SNE from two principal directions, perplexity 30); far apart says little. ${coloured} ${how}`;
  showGroups();
  listenToPointers(choose);
  listenToKeys();
  new ResizeObserver(() => {
    const first = !mapWidth, ratio = window.devicePixelRatio || 1;
    mapWidth = canvas.clientWidth;
    mapHeight = canvas.clientHeight;
    canvas.width = mapWidth * ratio;
    canvas.height = mapHeight * ratio;
    if (first || look.scale === look.whole) fitMap();
    else redraw();
  }).observe(canvas);
}
