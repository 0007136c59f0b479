// @ts-check
// Bars over time as SVG, with the same figures as a table behind them.

import { day, hour, number, shortTime, t, time } from './text.js';
import { el, fill, svg, table } from './view.js';

/**
 * @typedef {{name: string, class: string, values: number[]}} Series `class` colours it, see portal.css
 * @typedef {{title: string, times: string[], series: Series[], also?: Omit<Series, 'class'>[], isGauge?: boolean, end?: string}} Chart
 *   `also`: only in the table; `end`: the label at the right edge
 */

const height = 168;
const edge = { left: 46, right: 8, top: 10, bottom: 22 };
/** Few bars, as of a young hub, need not fill the picture. */
const widest = 32;

/** @param {Chart} chart bars that stand on each other, without gaps for a gauge */
export function chart({ title, times, series, also = [], isGauge = false, end }) {
  const totals = times.map((_, index) => series.reduce((all, part) => all + (part.values[index] ?? 0), 0));
  const top = ceiling(Math.max(1, ...totals));
  const picture = el('div', { class: 'plot' });
  const tip = el('div', { class: 'tip', hidden: true });
  const legend = el('ul', { class: 'legend', 'aria-hidden': 'true' }, series.map((part) => el('li', { class: part.class }, part.name)));
  let width = 0;

  const draw = () => {
    const inner = { width: width - edge.left - edge.right, height: height - edge.top - edge.bottom };
    const x = (/** @type {number} */ index) => edge.left + (inner.width * index) / times.length;
    const y = (/** @type {number} */ value) => edge.top + inner.height * (1 - value / top);
    const step = inner.width / times.length;
    const gap = step > 3 && !isGauge ? 1 : 0;
    const marks = [0, top / 2, top].filter((value) => Number.isInteger(value) || top < 2);
    const labels = Math.max(2, Math.min(6, Math.floor(inner.width / 110), times.length));
    /** @type {Element[]} */
    const shapes = [];
    times.forEach((_, index) => {
      let base = 0;
      for (const part of series) {
        const value = part.values[index] ?? 0;
        if (value === 0) continue;
        const high = Math.max(1, y(base) - y(base + value));
        shapes.push(svg('rect', {
          class: part.class, x: x(index) + gap / 2, width: Math.max(0.8, isGauge ? step + 0.5 : Math.min(widest, step - gap)),
          y: y(base) - high, height: high, rx: step > 6 && gap ? 1.5 : 0,
        }));
        base += value;
      }
    });
    const cursor = svg('rect', { class: 'cursor', y: edge.top, height: inner.height, width: Math.max(1, step), visibility: 'hidden' });
    const root = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title },
      marks.map((value) => svg('line', { class: 'rule', x1: edge.left, x2: width - edge.right, y1: y(value), y2: y(value) })),
      marks.map((value) => svg('text', { class: 'tick', x: edge.left - 7, y: y(value) + 4, 'text-anchor': 'end' }, number(value, { notation: 'compact' }))),
      Array.from({ length: labels }, (_, label) => {
        const index = Math.floor((times.length - 1) * (label / (labels - 1)));
        const [isFirst, isLast] = [label === 0, label === labels - 1];
        return svg('text', {
          class: 'tick', y: height - 6, x: isFirst ? edge.left : isLast ? width - edge.right : x(index) + step / 2,
          'text-anchor': isFirst ? 'start' : isLast ? 'end' : 'middle',
        }, isLast && end || tickTime(times[index], times));
      }),
      cursor, shapes);
    root.addEventListener('pointermove', (event) => {
      const index = Math.floor(((/** @type {PointerEvent} */ (event).offsetX - edge.left) / inner.width) * times.length);
      if (index < 0 || index >= times.length) return hide();
      cursor.setAttribute('x', String(x(index)));
      cursor.setAttribute('visibility', 'visible');
      fill(tip, el('strong', null, time(times[index])), series.map((part) =>
        el('span', { class: part.class }, `${part.name}: `, number(part.values[index] ?? 0))));
      tip.hidden = false;
      const side = x(index) > width / 2;
      tip.style.left = side ? 'auto' : `${x(index) + step + 8}px`;
      tip.style.right = side ? `${width - x(index) + 8}px` : 'auto';
    });
    const hide = () => {
      tip.hidden = true;
      cursor.setAttribute('visibility', 'hidden');
    };
    root.addEventListener('pointerleave', hide);
    fill(picture, root, tip);
  };
  new ResizeObserver(([{ contentRect }]) => {
    if (Math.abs(contentRect.width - width) < 1 || contentRect.width < 60) return;
    width = contentRect.width;
    draw();
  }).observe(picture);

  const behind = el('details', { class: 'behind' }, el('summary', null, t('chart.table')));
  // A thousand rows are created only on demand.
  behind.addEventListener('toggle', () => {
    if (!behind.open || behind.childElementCount > 1) return;
    const rows = times.map((time, index) => ({ time, index }))
      .filter(({ index }) => totals[index] > 0 || also.some(({ values }) => values[index] > 0)).reverse();
    behind.append(rows.length === 0 ? el('p', { class: 'hint' }, t('chart.nothing')) : table(title, [
      { head: t('chart.time'), cell: (row) => time(row.time) },
      ...[...series, ...also].map((part) => ({ head: part.name, class: 'number', cell: (/** @type {{index: number}} */ row) => part.values[row.index] ?? 0 })),
    ], rows));
  });
  return el('div', { class: 'chart' }, legend, picture, behind);
}

/**
 * The next round number.
 * @param {number} value
 */
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value) ?? 10;
  return Math.max(2, Math.round(step * power));
}

/**
 * @param {string} value
 * @param {string[]} times
 */
function tickTime(value, times) {
  const span = Date.parse(times.at(-1) ?? '') - Date.parse(times[0]);
  if (span > 3 * 86_400_000) return day(value);
  return span > 86_400_000 ? shortTime(value) : hour(value);
}
