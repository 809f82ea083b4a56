"use strict";

// Dots, lines and bars. Every function takes a plot and the runs of its group, and returns elements.
const UnweaveCharts = (() => {
  const { make } = UnweaveDom;
  const { Panel } = UnweavePanels;
  const { makeScale, limitsOf, roundTicks, readable } = UnweaveScales;
  const ROW = 24; // height of a setting
  const JITTER = 6; // largest vertical offset of a dot
  const LETTER = 6.1; // width of a letter of a label
  const MAX_LETTERS = 34; // of a label; the rest is in the tip
  const MAX_TICKS = 8; // values of a parameter that are written below a logarithmic axis
  const COLORS = 8; // of series, in report.css

  // Return a shorter label: only the parameters, which tell settings apart, and of many the last ones.
  function cut(text) {
    if (text.length <= MAX_LETTERS) return text;
    const parameters = /^\S+ \((.+)\)$/.exec(text)?.[1] ?? text;
    return parameters.length <= MAX_LETTERS ? parameters : `\u2026${parameters.slice(1 - MAX_LETTERS)}`;
  }

  const finite = (values) => values.filter((value) => value !== null);

  function runLines(run, score) {
    return [run.label, `seed ${run.seed}`, `${score} ${readable(run.scores[score])}`];
  }

  // One row per setting, one dot per run, and a box between the quartiles.
  function drawSpread(plot, group) {
    const letters = Math.max(...plot.panels[0].rows.map((row) => cut(row.name).length));
    return plot.panels.map(({ score, rows }) => {
      const left = LETTER * letters + 14, height = ROW * rows.length + 36;
      const panel = new Panel({ title: score, width: 430, height, margins: [6, 14, 30, left], about: `${score} of every run` });
      const limits = limitsOf(rows.flatMap((row) => row.runs.map((i) => group.runs[i].scores[score])));
      const x = makeScale(limits, [left + 6, panel.area.right - 6]), marks = [];
      panel.drawAxes({ x, y: null, xTicks: roundTicks(limits, 4), yTicks: [], xLabel: "", yLabel: "" });
      rows.forEach((row, k) => {
        const middle = panel.area.top + ROW * (k + 0.5);
        const label = panel.add("text", { class: "label", x: left - 8, y: middle + 4, "text-anchor": "end" }, cut(row.name));
        panel.addTitle(label, row.name);
        if (row.quartiles) drawBox(panel, row.quartiles.map(x), middle);
        row.runs.forEach((i, place) => {
          const offset = row.runs.length > 1 ? JITTER * ((2 * place) / (row.runs.length - 1) - 1) : 0;
          const mark = { x: x(group.runs[i].scores[score]), y: middle + offset, lines: runLines(group.runs[i], score), run: i };
          panel.add("circle", { class: "run", cx: mark.x, cy: mark.y, r: 3.6, "data-run": i });
          marks.push(mark);
        });
      });
      panel.bind(marks, group.select);
      return panel.element;
    });
  }

  function drawBox(panel, [low, middle, high], y) {
    const shape = { y: y - 9, height: 18, rx: 2 };
    panel.add("rect", { class: "box", x: low, width: Math.max(high - low, 1), ...shape });
    panel.add("line", { class: "median", x1: middle, x2: middle, y1: y - 9, y2: y + 9 });
  }

  // Scores over a parameter: one dot per run, a line through the means, shaded between the lowest and the highest.
  function drawEffect(plot, group) {
    const names = [...new Set(plot.panels.flatMap(({ series }) => series.map((line) => line.name)))];
    return plot.panels.map(({ score, series }) => {
      const panel = new Panel({ title: score, width: 330, height: 230, margins: [8, 12, 40, 46], about: `${score} over ${plot.parameter}` });
      const { left, right, top, bottom } = panel.area;
      const xLimits = [plot.ticks[0], plot.ticks[plot.ticks.length - 1]];
      const yLimits = limitsOf(series.flatMap((line) => [...line.min, ...line.max]));
      const x = makeScale(xLimits, [left + 10, right - 10], plot.log), y = makeScale(yLimits, [bottom, top]);
      const own = plot.log || plot.ticks.length <= MAX_TICKS ? plot.ticks.map((tick) => [tick, readable(tick)]) : roundTicks(xLimits);
      panel.drawAxes({ x, y, xTicks: own, yTicks: roundTicks(yLimits, 4), xLabel: plot.parameter, yLabel: "" });
      const marks = [];
      for (const line of series) {
        const k = names.indexOf(line.name);
        const ends = [...line.x.map((at, i) => [at, line.max[i]]), ...line.x.map((at, i) => [at, line.min[i]]).reverse()];
        panel.add("polygon", { class: `band series-${k % COLORS}`, points: ends.map(([a, b]) => `${x(a)},${y(b)}`).join(" ") });
        panel.add("polyline", { class: `line series-${k % COLORS}`, points: line.x.map((a, i) => `${x(a)},${y(line.mean[i])}`).join(" ") });
        line.runs.forEach((i, place) => {
          const mark = { x: x(line.at[place]), y: y(group.runs[i].scores[score]), lines: runLines(group.runs[i], score), run: i };
          panel.add("circle", { class: `run series-${k % COLORS}`, cx: mark.x, cy: mark.y, r: 3.2, "data-run": i });
          marks.push(mark);
        });
      }
      panel.bind(marks, group.select);
      return panel.element;
    }).concat(drawLegend(names));
  }

  function drawCurves(plot) {
    const names = [...new Set(plot.panels.flatMap((panel) => panel.series.map((line) => line.name)))];
    return plot.panels.map(({ title, x: xLabel, series, mark }) => {
      const panel = new Panel({ title, width: 330, height: 230, margins: [8, 12, 40, 52], about: `${title} over ${xLabel}` });
      const { left, right, top, bottom } = panel.area;
      const xLimits = limitsOf(series.flatMap((line) => line.x), mark === undefined ? 0 : 0.04);
      const yLimits = limitsOf(series.flatMap((line) => line.y));
      const x = makeScale(xLimits, [left, right]), y = makeScale(yLimits, [bottom, top]), marks = [];
      panel.drawAxes({ x, y, xTicks: roundTicks(xLimits, 4), yTicks: roundTicks(yLimits, 4), xLabel, yLabel: "" });
      for (const line of series) {
        const color = names.indexOf(line.name) % COLORS, places = line.x.map((_, i) => i).filter((i) => line.y[i] !== null);
        panel.add("polyline", { class: `line series-${color}`, points: places.map((i) => `${x(line.x[i])},${y(line.y[i])}`).join(" ") });
        for (const i of places) {
          const point = { x: x(line.x[i]), y: y(line.y[i]) };
          marks.push({ ...point, lines: [line.name, `${xLabel} ${readable(line.x[i])}`, `${title}: ${readable(line.y[i])}`] });
          if (line.x[i] === mark) panel.add("circle", { class: `run series-${color}`, cx: point.x, cy: point.y, r: 5 });
        }
      }
      panel.bind(marks);
      return panel.element;
    }).concat(drawLegend(names));
  }

  function drawBars(plot) {
    return plot.panels.map(({ title, x: xLabel, y: yLabel, edges, values, marked }) => {
      const panel = new Panel({ title, width: 330, height: 230, margins: [8, 12, 40, 58], about: `${yLabel} over ${xLabel}` });
      const { left, right, top, bottom } = panel.area;
      const xLimits = [edges[0], edges[edges.length - 1]], yLimits = [0, 1.05 * (Math.max(...finite(values)) || 1)];
      const x = makeScale(xLimits, [left, right]), y = makeScale(yLimits, [bottom, top]), marks = [];
      const isWhole = marked !== undefined;
      const ticks = roundTicks(xLimits, 5).filter(([value]) => !isWhole || Number.isInteger(value));
      panel.drawAxes({ x, y, xTicks: ticks, yTicks: roundTicks(yLimits, 4), xLabel, yLabel });
      values.forEach((value, i) => {
        const kind = isWhole && i >= marked ? "bar other" : "bar";
        const width = Math.max(x(edges[i + 1]) - x(edges[i]) - 1, 0.5);
        panel.add("rect", { class: kind, x: x(edges[i]) + 0.5, width, y: y(value), height: bottom - y(value) });
        const place = isWhole ? `${xLabel} ${i + 1}` : `${xLabel} ${readable(edges[i])} to ${readable(edges[i + 1])}`;
        marks.push({ x: (x(edges[i]) + x(edges[i + 1])) / 2, y: y(value), lines: [place, `${yLabel}: ${readable(value)}`] });
      });
      panel.bind(marks);
      return panel.element;
    });
  }

  function drawLegend(names) {
    if (names.length < 2) return [];
    const entries = names.map((name, k) => make("span", { className: "entry" }, make("span", { className: `swatch series-${k % COLORS}` }), make("span", { text: name })));
    return [make("div", { className: "legend" }, ...entries)];
  }

  return { drawSpread, drawEffect, drawCurves, drawBars };
})();
