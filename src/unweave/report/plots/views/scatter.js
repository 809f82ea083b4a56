"use strict";

// Observations as points: two columns of a run as axes, a factor as color.
const UnweaveScatter = (() => {
  const { make, fitCanvas } = UnweaveDom;
  const { Panel } = UnweavePanels;
  const { makeScale, limitsOf, roundTicks, readable, unpack, factorColor } = UnweaveScales;
  const SHARPNESS = 2; // pixels of a canvas per unit of its panel
  const FEW_POINTS = 300; // of which dots are larger
  const SPREAD = 0.25; // largest offset of a point whose place is a class
  const GOLDEN = 0.618034; // multiples of it are spread evenly

  // Unpack the columns that all panels of a run share.
  function readSource(source) {
    const read = (column) => ({ ...column, values: unpack(column) });
    return { codes: source.codes.map(read), factors: source.factors.map(read) };
  }

  function factorText(factor, value) {
    if (factor.names) return factor.names[Math.round(value)];
    const named = factor.spread && factor.ticks.find(([place]) => place === Math.round(value));
    return named ? named[1] : readable(value);
  }

  function placesOf(column) {
    if (!column.spread) return column.values;
    return column.values.map((value, i) => value + SPREAD * (2 * ((i * GOLDEN) % 1) - 1));
  }

  function axisOf(column, values, range, isExact) {
    const limits = column.limits ? widen(column.limits, isExact) : limitsOf([...values], 0.06);
    return { scale: makeScale(limits, range), ticks: column.ticks ?? roundTicks(limits, 4) };
  }

  function widen([low, high], isExact) {
    const room = isExact ? 0 : 0.05 * (high - low || 1);
    return [low - room, high + room];
  }

  class ScatterPanel {
    constructor(source, { x, y, color, title, count, diagonal }, isSmall) {
      const [xs, ys] = [x, y].map(([kind, i]) => source[kind][i]);
      this.factor = color === undefined ? undefined : source.factors[color];
      const heading = title ?? (this.factor && !isSmall ? `colored by ${this.factor.name}` : "");
      const about = `${ys.name} over ${xs.name}`;
      this.panel = new Panel({ title: heading, width: 270, height: isSmall ? 190 : 235, margins: [8, 12, 40, 54], about });
      this.canvas = make("canvas", { className: "points", "aria-hidden": "true" });
      this.panel.box.prepend(this.canvas);
      this.key = make("div", { className: "key" });
      if (this.factor && !isSmall) this.panel.element.append(this.key);
      const { left, right, top, bottom } = this.panel.area;
      const [placesX, placesY] = [placesOf(xs), placesOf(ys)];
      const horizontal = axisOf(xs, placesX, [left, right], diagonal), vertical = axisOf(ys, placesY, [bottom, top], diagonal);
      const axes = { x: horizontal.scale, y: vertical.scale, xTicks: horizontal.ticks, yTicks: vertical.ticks };
      this.panel.drawAxes({ ...axes, xLabel: xs.name, yLabel: ys.name });
      if (diagonal) this.drawDiagonal(horizontal.scale, vertical.scale, Math.min(xs.limits[1], ys.limits[1]));
      const number = Math.min(count ?? Infinity, xs.values.length);
      this.rows = Array.from({ length: number }, (_, i) => i).filter((i) => vertical.scale(placesY[i]) >= top - 1);
      const lines = (i) => () => [
        `observation ${i + 1} of the sample`, `${xs.name}: ${factorText(xs, xs.values[i])}`, `${ys.name}: ${readable(ys.values[i])}`,
        ...source.factors.filter((factor) => factor !== xs).map((factor) => `${factor.name}: ${factorText(factor, factor.values[i])}`),
      ];
      this.marks = this.rows.map((i) => ({ x: horizontal.scale(placesX[i]), y: vertical.scale(placesY[i]), lines: lines(i) }));
      this.panel.bind(this.marks, null, !isSmall);
      this.paint();
    }

    drawDiagonal(x, y, end) {
      this.panel.add("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(end), y2: y(end) });
    }

    colorBy(factor) {
      this.factor = factor;
      this.paint();
    }

    paint() {
      const { width, height } = this.panel;
      const context = fitCanvas(this.canvas, width, height);
      this.canvas.width = width * SHARPNESS;
      this.canvas.height = height * SHARPNESS;
      context.setTransform(SHARPNESS, 0, 0, SHARPNESS, 0, 0);
      const radius = this.rows.length <= FEW_POINTS ? 2.4 : 1.3;
      const color = this.factor ? factorColor(this.factor) : null, plain = UnweaveDom.style("--mark");
      this.rows.forEach((i, place) => {
        context.fillStyle = color ? color(this.factor.values[i]) : plain;
        context.beginPath();
        context.arc(this.marks[place].x, this.marks[place].y, radius, 0, 2 * Math.PI);
        context.fill();
      });
      if (this.key.isConnected || this.factor) fillKey(this.key, this.factor);
    }
  }

  // Show the meaning of the colors: names of classes, or a ramp with its ends.
  function fillKey(key, factor) {
    if (!factor) return;
    const color = factorColor(factor);
    if (factor.names) {
      key.replaceChildren(...factor.names.map((name, i) => {
        const swatch = make("span", { className: "swatch" });
        swatch.style.background = color(i);
        return make("span", { className: "entry" }, swatch, make("span", { text: name }));
      }));
      return;
    }
    const [low, high] = factor.limits, ticks = factor.ticks ?? [];
    const texts = ticks.length ? [ticks[0][1], ticks[ticks.length - 1][1]] : [readable(low), readable(high)];
    const ramp = make("span", { className: "ramp" });
    ramp.style.background = `linear-gradient(to right, ${factor.stops.map((_, i) => color(low + ((high - low) * i) / (factor.stops.length - 1))).join(", ")})`;
    key.replaceChildren(make("span", { text: texts[0] }), ramp, make("span", { text: texts[1] }));
  }

  // Draw all panels of a plot; with `choose`, one factor at a time colors them.
  function drawScatter(plot, source, repaints) {
    const isSmall = plot.columns !== undefined;
    const panels = plot.panels.map((panel) => new ScatterPanel(source, plot.choose ? { ...panel, title: "" } : panel, isSmall));
    panels.forEach((panel) => repaints.push(() => panel.paint()));
    const elements = panels.map((panel) => panel.panel.element);
    if (!plot.choose) return elements;
    const key = make("div", { className: "key" });
    const recolor = () => {
      panels.forEach((panel) => panel.colorBy(source.factors[Number(select.value)]));
      fillKey(key, source.factors[Number(select.value)]);
    };
    const select = make("select", { onchange: recolor }, ...source.factors.map(({ name }, k) => make("option", { value: k, text: name })));
    const tools = make("div", { className: "tools" }, make("label", {}, "Color by ", select), key);
    recolor();
    repaints.push(recolor);
    return [tools, ...elements];
  }

  return { drawScatter, readSource };
})();
