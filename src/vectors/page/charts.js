// Draws curves as SVG over the finished share of the run, with a cursor that shows values.

const chartHeight = 230, left = 58, right = 12, topEdge = 10, bottom = 30;

// Returns round numbers that divide low..high into about `wanted` steps.
function ticks(low, high, wanted) {
  const raw = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(+(i * step).toPrecision(12));
  return found;
}

// Returns the points of a line, split at points without a value.
function pathOf(line, x, y) {
  let path = '', pen = 'M';
  line.values.forEach((value, i) => {
    if (value === null) {
      pen = 'M';
      return;
    }
    path += `${pen}${x(line.at[i]).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = 'L';
  });
  return path;
}

function rangeOf(chart) {
  const values = chart.lines.flatMap((line) => line.values).filter((value) => value !== null);
  let low = chart.fromZero ? 0 : Math.min(...values), high = Math.max(...values);
  if (chart.level && chart.level <= 2 * high) high = Math.max(high, chart.level);
  if (low === high) [low, high] = [low - (low ? Math.abs(low) / 2 : 1), high + (high ? Math.abs(high) / 2 : 1)];
  return [chart.fromZero ? 0 : low - (high - low) * 0.05, high + (high - low) * 0.05];
}

function drawGrid(svg, chart, width, x, y, low, high) {
  for (const value of ticks(low, high, 5)) {
    const at = y(value);
    svg.append(element('svg:line', {class: 'grid', x1: left, x2: width - right, y1: at, y2: at}),
      element('svg:text', {x: left - 8, y: at + 4, 'text-anchor': 'end'}, short(value)));
  }
  for (const share of width < 420 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(element('svg:text', {x: x(share), y: chartHeight - 8, 'text-anchor': share === 1 ? 'end' : 'middle'},
      `${share * 100}%`));
  }
  const base = chartHeight - bottom;
  svg.append(element('svg:line', {class: 'axis', x1: left, x2: width - right, y1: base, y2: base}));
}

function drawLines(svg, chart, x, y) {
  for (const line of chart.lines) {
    svg.append(element('svg:path', {class: `${line.look}${line.dots ? '' : ' faint'}`, d: pathOf(line, x, y)}));
    const dots = line.dots || line.values.filter((value) => value !== null).length === 1;
    line.values.forEach((value, i) => {
      if (dots && value !== null) {
        svg.append(element('svg:circle', {class: line.look, cx: x(line.at[i]), cy: y(value), r: 3.5}));
      }
    });
  }
}

// Returns the point of a line that is nearest to a share of the run.
function nearestPoint(line, share) {
  let best = -1;
  line.at.forEach((at, i) => {
    if (line.values[i] !== null && (best < 0 || Math.abs(at - share) < Math.abs(line.at[best] - share))) best = i;
  });
  return best;
}

function legendOf(chart, share) {
  const parts = chart.lines.map((line) => {
    const i = nearestPoint(line, share === null ? 1 : share);
    const value = i < 0 ? '' : ` ${line.values[i] >= 1000 ? short(line.values[i]) : +line.values[i].toPrecision(4)}`;
    return element('span', {}, element('span', {class: `key ${line.look}`}), line.name + value);
  });
  if (chart.level) parts.push(element('span', {}, `untrained ${+chart.level.toPrecision(4)}`));
  if (share !== null) {
    const i = nearestPoint(chart.lines[0], share);
    parts.push(element('span', {}, chart.when(i)));
  }
  return parts;
}

function drawChart(figure, chart) {
  const width = Math.max(figure.clientWidth, 240), [low, high] = rangeOf(chart);
  const x = (share) => left + share * (width - left - right);
  const y = (value) => chartHeight - bottom - (value - low) / (high - low) * (chartHeight - bottom - topEdge);
  const svg = element('svg:svg', {viewBox: `0 0 ${width} ${chartHeight}`, role: 'img', 'aria-label': chart.told});
  const legend = element('div', {class: 'legend'}, ...legendOf(chart, null));
  const cursor = element('svg:line', {class: 'cursor', y1: topEdge, y2: chartHeight - bottom, visibility: 'hidden'});
  drawGrid(svg, chart, width, x, y, low, high);
  if (chart.level && chart.level < high) {
    svg.append(element('svg:line', {class: 'untrained', x1: left, x2: width - right, y1: y(chart.level), y2: y(chart.level)}));
  }
  drawLines(svg, chart, x, y);
  svg.append(cursor);
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, ((event.clientX - box.left) * width / box.width - left) / (width - left - right)));
    cursor.setAttribute('x1', x(share));
    cursor.setAttribute('x2', x(share));
    cursor.setAttribute('visibility', 'visible');
    legend.replaceChildren(...legendOf(chart, share));
  });
  svg.addEventListener('pointerleave', () => {
    cursor.setAttribute('visibility', 'hidden');
    legend.replaceChildren(...legendOf(chart, null));
  });
  const points = Math.max(...chart.lines.map((line) => line.values.filter((value) => value !== null).length));
  const only = points > 1 ? [] : [element('p', {class: 'quiet'}, 'The run was so short that it has one point.')];
  figure.replaceChildren(element('h3', {}, chart.name), legend, ...only, svg);
}

// Returns the charts to draw: loss, held-out score, speed and learning rate, each if the run recorded it.
function chartsOf(history) {
  const {trained, held_out: heldOut, scored} = history;
  const has = (values) => values.some((value) => value !== null);
  const when = (i) => `at ${Math.round(trained.done[i] * 100)}%, epoch ${trained.epoch[i] + (trained.done[i] < 1 ? 1 : 0)}` +
    (trained.seconds[i] === null ? '' : `, after ${duration(trained.seconds[i])}`);
  const line = (name, look, values) => ({name, look, at: trained.done, values});
  const ends = (values) => {
    const told = values.filter((value) => value !== null);
    return `${short(told[0])} at first, ${short(told[told.length - 1])} at last`;
  };
  const charts = [];
  if (has(trained.loss)) {
    const lines = [line('training', 'trained', trained.loss)];
    let told = `Training loss a pair: ${ends(trained.loss)}.`;
    if (has(heldOut.loss)) {
      lines.push({name: 'held out', look: 'held-out', at: heldOut.done, values: heldOut.loss, dots: true});
      told += ` Held-out loss: ${ends(heldOut.loss)}.`;
    }
    charts.push({name: 'Loss a pair', lines, told, when, level: history.untrained});
  }
  if (has(scored.score)) {
    charts.push({name: `Held-out ${scored.name}`, told: `Held-out ${scored.name}: ${ends(scored.score)}.`,
      lines: [{name: scored.name, look: 'held-out', at: scored.done, values: scored.score, dots: true}],
      when: (i) => `at ${Math.round(scored.done[i] * 100)}%`});
  }
  if (has(trained.pairs)) {
    const lines = [line('pairs/s', 'trained', trained.pairs)];
    if (trained.words.some((value) => value > 0)) lines.push(line('words/s', 'second', trained.words));
    charts.push({name: 'Speed', lines, told: `Pairs a second: ${ends(trained.pairs)}.`, when, fromZero: true});
  }
  if (has(trained.lr)) {
    charts.push({name: 'Learning rate', lines: [line('rate', 'trained', trained.lr)],
      told: `Learning rate: ${ends(trained.lr)}.`, when, fromZero: true});
  }
  return charts;
}

function showCharts() {
  const charts = chartsOf(data.history);
  const figures = charts.map(() => element('figure', {}));
  byId('charts').replaceChildren(...figures);
  if (!charts.length) {
    byId('charts').replaceChildren(element('p', {class: 'quiet'}, 'The run left no metrics.jsonl, or no line of it yet.'));
  }
  const drawAll = () => figures.forEach((figure, i) => drawChart(figure, charts[i]));
  let width = 0;
  new ResizeObserver(() => {
    if (byId('charts').clientWidth === width) return;
    width = byId('charts').clientWidth;
    drawAll();
  }).observe(byId('charts'));
}
