// Decodes the data of the page, and formats numbers and names.

const data = JSON.parse(document.getElementById('data').textContent);

function decode(base64, Type) {
  return new Type(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)).buffer);
}

const none = 0xFFFFFFFF;                        // no row
const near = decode(data.near, Uint32Array);    // [listed x k] numbers of names
const scores = decode(data.scores, Int32Array); // [listed x k] millionths
const places = new Float64Array(2 * data.listed).fill(NaN); // [listed x 2] 0 to 65535 each way; NaN: the row has no place
const groups = new Uint8Array(data.listed).fill(data.groups.count); // [listed] numbers of groups; data.groups.count: none

// The program computes map coordinates for the `top` most frequent rows only. A rarer row gets the mean coordinates of the first
// three of its nearest rows that have some, moved a little so that two such rows do not cover each other, and the group of the
// first of these.
function placeRows() {
  places.set(decode(data.map, Uint16Array));
  groups.set(decode(data.groups.of, Uint8Array).map((group) => Math.min(group, data.groups.count)));
  for (let row = data.top; row < data.listed; row++) {
    const beside = Array.from(near.subarray(row * data.k, (row + 1) * data.k))
      .filter((other) => other < data.listed && !Number.isNaN(places[2 * other])).slice(0, 3);
    if (!beside.length) continue;
    groups[row] = groups[beside[0]];
    for (const axis of [0, 1]) {
      const mean = beside.reduce((sum, other) => sum + places[2 * other + axis], 0) / beside.length;
      places[2 * row + axis] = mean + ((row * (axis ? 7919 : 104729)) % 1009) - 504;
    }
  }
}
placeRows();

function byId(id) {
  return document.getElementById(id);
}

// Makes an element with attributes and children. Strings become text nodes: no data of a run is read as HTML.
function element(tag, attributes, ...children) {
  const made = tag.startsWith('svg:')
    ? document.createElementNS('http://www.w3.org/2000/svg', tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// ---- names ----

const unseen = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// Returns a name for display: characters that are invisible, or that would change the direction of text, become a mark.
function visible(text) {
  const shown = text.replace(unseen, (c) => (c < ' ' ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : '\u00b7'));
  return shown.trim() ? shown : '(blank)';
}

function nameOf(row) {
  return visible(data.names[row]);
}

function titleOf(row) {
  return data.titles[row] ? visible(data.titles[row]) : null;
}

// Returns a name in the form of the map and of headings.
function calledOf(row) {
  return titleOf(row) || nameOf(row);
}

// ---- numbers ----

function whole(n) {
  return n.toLocaleString('en');
}

// 2.63 M
function short(n) {
  for (const [size, unit] of [[1e9, ' G'], [1e6, ' M'], [1e3, ' k']]) {
    if (Math.abs(n) >= size) return (n / size).toPrecision(3) + unit;
  }
  return String(+n.toPrecision(3));
}

function duration(seconds) {
  const s = Math.round(seconds), m = Math.floor(s / 60), h = Math.floor(m / 60);
  if (h) return `${h} h ${m % 60} min`;
  return m ? `${m} min ${s % 60} s` : `${seconds < 10 ? +seconds.toPrecision(2) : s} s`;
}

// Formats six digits after the point, as `nearest` prints them.
function scoreText(millionths) {
  const digits = String(Math.abs(millionths)).padStart(7, '0');
  return `${millionths < 0 ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

// ---- the configuration: [[section, [[key, value], ..]], ..] ----

function readConfig(text) {
  const sections = [];
  for (const line of text.split('\n')) {
    const section = /^\[(.*)\]\s*$/.exec(line), key = /^([^;#=][^=]*?)\s*=\s*(.*)$/.exec(line);
    if (section) sections.push([section[1], []]);
    else if (key && sections.length) sections[sections.length - 1][1].push([key[1], key[2]]);
  }
  return sections;
}

const config = readConfig(data.config);
// How the corpus was read, as the run said it; '' if it has no fields.
const readAs = (/^# columns +(.*)$/m.exec(data.config) || ['', ''])[1];

// Returns the value of "section.key", or ''.
function keyOf(name) {
  const [section, key] = name.split('.');
  for (const [found, keys] of config) {
    if (found === section) for (const [k, value] of keys) if (k === key) return value;
  }
  return '';
}
