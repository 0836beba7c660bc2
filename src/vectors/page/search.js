// The search: typed text selects rows by name or title, and the nearest rows of the best one are shown at once. `nearest` computed
// these lists; this script only looks them up.

const input = byId('search'), matches = byId('matches'), nearest = byId('nearest');
const matchesMost = 8;
let found = [], active = -1; // rows that match, and which of them is shown
let shownRow = -1;           // whose nearest rows are shown

function folded(text) {
  return text.normalize('NFC').toLowerCase();
}

const foldedNames = data.names.map(folded), foldedTitles = data.titles.map((title) => title && folded(title));

// Returns how well a row matches the typed text; 0 is best, Infinity is no match.
function rank(row, typed, asTyped) {
  if (data.names[row] === asTyped || data.titles[row] === asTyped) return 0;
  const name = foldedNames[row], title = foldedTitles[row];
  if (name === typed || title === typed) return 1;
  if (name.startsWith(typed) || (title && title.startsWith(typed))) return 2;
  return name.includes(typed) || (title && title.includes(typed)) ? 3 : Infinity;
}

// The rows are in order of frequency; rows that match equally well keep that order.
function findRows(asTyped) {
  const typed = folded(asTyped), classes = [[], [], [], []];
  for (let row = 0; typed && row < data.names.length; row++) {
    const at = rank(row, typed, asTyped);
    if (at < 4 && classes[at].length < matchesMost && (row < data.listed || at < 2)) classes[at].push(row);
  }
  return classes.flat().slice(0, matchesMost);
}

// ---- the answer ----

function listOf(row) {
  const list = [];
  for (let i = row * data.k; i < (row + 1) * data.k; i++) if (near[i] !== none) list.push([near[i], scores[i]]);
  return list;
}

// Returns a text for a shell command, in quotes if necessary.
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function commandFor(word) {
  const tables = data.table === 'target' ? '' : ` --query=${data.table} --among=${data.table}`;
  const ending = word.startsWith('--') ? '-- ' : '';
  return element('code', {}, `sptx-w2v nearest ${quoted(visible(data.run))}${tables} ${ending}${quoted(word)}`);
}

function neighbour([row, score], number) {
  const title = titleOf(row), full = title ? `${nameOf(row)}: ${title}` : nameOf(row);
  const name = element('bdi', {class: 'name', title: full}, calledOf(row));
  const bar = element('span', {class: 'bar'});
  const button = element('button', {type: 'button', 'data-row': row, tabindex: number ? -1 : 0}, name,
    element('span', {class: 'score'}, scoreText(score)), bar);
  bar.style.width = `${Math.max(0, score / 1e4)}%`;
  button.classList.toggle('absent', row >= data.listed);
  button.addEventListener('click', () => choose(row, true));
  return element('li', {}, button);
}

function showNeighbours(row) {
  const list = listOf(row), title = titleOf(row);
  const more = ` ${whole(data.counts[row])} times; nearest by cosine:`;
  byId('asked').replaceChildren(element('b', {}, element('bdi', {}, calledOf(row))),
    element('span', {class: 'quiet'}, ...(title ? [' id ', element('bdi', {}, nameOf(row)), ','] : []), more));
  nearest.replaceChildren(...list.map(neighbour));
  nearest.scrollTop = 0;
  byId('command').replaceChildren('In a terminal: ', commandFor(data.names[row]));
  pointOut(row, list.map(([other]) => other));
}

function say(...parts) {
  byId('message').replaceChildren(...parts);
}

function show(row) {
  shownRow = row;
  const held = row >= 0 && row < data.listed;
  byId('answer').hidden = !held;
  say();
  if (held) {
    showNeighbours(row);
    return;
  }
  nearest.replaceChildren();
  pointOut(-1, []);
  if (row >= 0) {
    say(element('bdi', {}, calledOf(row)), ` is not among the ${whole(data.listed)} most frequent rows, whose lists this page `,
      'has; ask ', commandFor(data.names[row]));
  }
}

// ---- typing ----

function showMatches() {
  matches.replaceChildren(...found.map((row, i) => {
    const option = element('li', {role: 'option', id: `match-${i}`, 'aria-selected': i === active, 'data-row': row},
      element('bdi', {}, calledOf(row)));
    option.addEventListener('click', () => choose(row, true));
    return option;
  }));
  input.setAttribute('aria-expanded', found.length > 0);
  if (active >= 0) input.setAttribute('aria-activedescendant', `match-${active}`);
  else input.removeAttribute('aria-activedescendant');
}

function activate(at) {
  active = at;
  showMatches();
  show(found[active] ?? -1);
}

function typed() {
  const text = input.value.trim();
  found = findRows(text);
  activate(found.length ? 0 : -1);
  if (text && !found.length) {
    say('No row of this page is called so. It holds the ', whole(data.listed), ' most frequent of ', whole(data.rows), '; ask ',
      commandFor(text));
  }
  if (!text) showExamples();
}

// Selects a row as if its name had been typed. Its name is in the address, so that Back selects the row before.
function choose(row, remember) {
  input.value = visible(data.titles[row] || data.names[row]);
  found = [];
  active = -1;
  showMatches();
  show(row);
  if (remember) location.hash = encodeURIComponent(data.names[row]);
}

// Returns example rows: not the most frequent words, which every text has.
function showExamples() {
  const rows = [30, 60, 100, 150, 220, 320, 450, 600].filter((row) => row < data.top);
  found = rows.length ? rows : Array.from({length: Math.min(data.top, matchesMost)}, (_, i) => i);
  active = -1;
  showMatches();
  say('Or click a dot of the map.');
}

function fromAddress() {
  let word = '';
  try {
    word = decodeURIComponent(location.hash.slice(1));
  } catch {
    // An invalid address selects nothing.
  }
  const row = word ? data.names.indexOf(word) : -1;
  if (row >= 0 && row !== shownRow) choose(row, false);
}

// ---- keys ----

function inInput(event) {
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (step && found.length) activate((active + step + found.length) % found.length);
  else if (step > 0 || event.key === 'Enter') {
    if (active >= 0) choose(found[active], true);
    nearest.querySelector('button')?.focus();
  } else if (event.key === 'Escape') {
    input.value = '';
    typed();
  } else return;
  event.preventDefault();
}

// The tab key reaches one button of a list; the arrow keys move between its buttons.
function walkButtons(list, event) {
  const buttons = [...list.querySelectorAll('button')], at = buttons.indexOf(document.activeElement);
  const to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1}[event.key];
  if (event.key === 'Escape' || to === -1) input.focus();
  else if (to === undefined) return;
  else if (to < buttons.length) {
    buttons[at].tabIndex = -1;
    buttons[to].tabIndex = 0;
    buttons[to].focus();
  }
  event.preventDefault();
}

function showSearch() {
  input.addEventListener('input', typed);
  input.addEventListener('keydown', inInput);
  nearest.addEventListener('keydown', (event) => walkButtons(nearest, event));
  // Enter on a neighbour selects it; the focus moves to its list of nearest rows.
  nearest.addEventListener('click', () => nearest.querySelector('button')?.focus());
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || document.activeElement === input) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  window.addEventListener('hashchange', fromAddress);
  showExamples();
  fromAddress();
}
