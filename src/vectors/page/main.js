// Fills the rest of the page, and starts everything.

function showHead() {
  const corpus = visible(keyOf('corpus.path')), format = keyOf('corpus.format');
  const on = keyOf('corpus.path') ? `, trained on ${corpus}${format ? ` (${format})` : ''}` : '';
  document.title = `${visible(data.run)} \u00b7 sptx-w2v`;
  byId('title').textContent = visible(data.run);
  byId('summary').textContent = `${whole(data.rows)} rows of ${whole(data.dim)} columns${on}` +
    (readAs ? `, read as ${visible(readAs)}` : '') + (data.finished ? '' : '. The run has not come to its end');
  byId('foot').textContent = `Written by sptx-w2v ${data.version} report from a checkpoint at step ${whole(data.step)}. ` +
    'The page fetches nothing.';
}

function figure(name, value, more) {
  return element('div', {}, element('dt', {}, name), element('dd', {}, value, ...(more ? [element('small', {}, more)] : [])));
}

function lastOf(values) {
  const told = values.filter((value) => value !== null);
  return told.length ? told[told.length - 1] : null;
}

function showFigures() {
  const {trained, held_out: heldOut, scored, untrained} = data.history, made = [];
  const heldOutLoss = lastOf(heldOut.loss), loss = lastOf(trained.loss), score = lastOf(scored.score);
  const firstHeldOut = heldOut.loss.find((value) => value !== null);
  if (heldOutLoss !== null) {
    made.push(figure('Held-out loss a pair', heldOutLoss.toPrecision(4),
      heldOut.loss.length > 1 ? `${firstHeldOut.toPrecision(4)} at first` : 'of examples never trained'));
  }
  if (score !== null) {
    made.push(figure(`Held-out ${scored.name}`, score.toFixed(4),
      scored.score.length > 1 ? `${scored.score.find((value) => value !== null).toFixed(4)} at first` : ''));
  }
  if (loss !== null) {
    made.push(figure('Training loss a pair', loss.toPrecision(4),
      untrained === null ? '' : `${untrained.toPrecision(4)} untrained`));
  }
  if (data.seconds > 0) {
    made.push(figure('Pairs a second', short(data.pairs / data.seconds),
      data.words ? `${short(data.words / data.seconds)} words` : ''));
    made.push(figure('Time', duration(data.seconds), `${whole(data.epoch)} epoch${data.epoch === 1 ? '' : 's'}`));
  }
  made.push(figure('Corpus', short(data.tokens), `${keyOf('corpus.format') === 'text' ? 'words' : 'items'} that have rows`));
  made.push(figure('Pairs', short(data.pairs), 'trained, each with its negatives'));
  const rule = keyOf('optimizer.rule');
  if (rule) made.push(figure('Optimizer', rule, `rate ${keyOf('optimizer.lr')}, ${keyOf('train.update')} updates`));
  byId('figures').replaceChildren(...made);
}

function showEvaluations() {
  byId('evaluation').hidden = !data.evaluations.length;
  byId('evaluation').append(...data.evaluations.map((text) => element('pre', {}, text.trimEnd())));
}

function showKeys() {
  const line = ([key, value]) => element('tr', {}, element('td', {}, key), element('td', {}, visible(value || '\u2013')));
  const tables = config.map(([section, keys]) => element('table', {}, element('caption', {}, section),
    element('tbody', {}, ...keys.map(line))));
  byId('keys').replaceChildren(...tables);
  byId('configuration').hidden = !config.length;
  byId('keys').parentElement.open = window.matchMedia('(min-width: 56rem)').matches;
}

// ---- light and dark: the system's choice until the button is used ----

const systemDark = window.matchMedia('(prefers-color-scheme: dark)');

function isDark() {
  const asked = document.documentElement.dataset.theme;
  return asked ? asked === 'dark' : systemDark.matches;
}

function themed() {
  byId('theme').textContent = isDark() ? 'Light' : 'Dark';
  byId('theme').setAttribute('aria-label', `Use ${isDark() ? 'light' : 'dark'} colours`);
  readColours();
  redraw();
}

function kept(theme) {
  try {
    if (theme) localStorage.setItem('sptx-w2v-theme', theme);
    return localStorage.getItem('sptx-w2v-theme');
  } catch {
    return null; // a browser that keeps nothing for files
  }
}

function showTheme() {
  const before = kept();
  if (before === 'light' || before === 'dark') document.documentElement.dataset.theme = before;
  byId('theme').addEventListener('click', () => {
    document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
    kept(document.documentElement.dataset.theme);
    themed();
  });
  systemDark.addEventListener('change', themed);
  themed();
}

showHead();
showFigures();
showCharts();
showEvaluations();
showKeys();
showMap((row) => choose(row, true));
showSearch();
showTheme();
