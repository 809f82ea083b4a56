"use strict";

// Scatter of two codes, colored by a factor. Points are drawn once; hover and current point are on a second canvas.
const UnweaveMap = (() => {
  const { make, style, fillSelect } = UnweaveDom;
  const REACH = 14; // pixels from a point at which it is hovered
  const PAD = 14;

  class ScatterMap {
    constructor(app, container) {
      this.app = app;
      this.hovered = -1;
      this.points = make("canvas", { className: "points", role: "img", "aria-label": "observations by two codes" });
      this.overlay = make("canvas", { className: "overlay", "aria-hidden": "true" });
      this.tip = make("div", { className: "tip", hidden: "" });
      this.plot = make("div", { className: "plot" }, this.points, this.overlay, this.tip);
      this.legend = make("div", { className: "legend soft" });
      container.append(this.makeControls(), this.plot, this.legend);
      this.overlay.addEventListener("pointermove", (event) => this.hover(event));
      this.overlay.addEventListener("pointerleave", () => this.leave());
      this.overlay.addEventListener("click", (event) => this.click(event));
    }

    makeControls() {
      const { model, state } = this.app;
      const codes = model.order.map((code) => [code, this.axisName(code)]);
      const factors = [[-1, "none"], ...model.factors.map((factor, j) => [j, factor.name])];
      this.selects = { x: make("select"), y: make("select"), color: make("select") };
      fillSelect(this.selects.x, codes, state.x);
      fillSelect(this.selects.y, codes, state.y);
      fillSelect(this.selects.color, factors, state.color);
      for (const [key, select] of Object.entries(this.selects)) {
        select.addEventListener("change", () => this.app.change({ [key]: Number(select.value) }));
      }
      this.target = make("select");
      fillSelect(this.target, [["start", "start"], ["second", "second"]], "start");
      const texts = [["x", this.selects.x], ["y", this.selects.y], ["color", this.selects.color], ["click sets", this.target]];
      const labels = texts.map(([text, select]) => make("label", {}, make("span", { text }), select));
      return make("div", { className: "controls" }, ...labels);
    }

    axisName(code) {
      const { facts, factors } = this.app.model;
      const name = this.app.model.codeName(code);
      return facts[code].factor < 0 ? name : `${name}: ${factors[facts[code].factor].name}`;
    }

    // Axes and color, of which a hovered cell of the matrix may show others for a moment.
    view() {
      const { state, preview } = this.app;
      if (!preview) return { x: state.x, y: state.y, color: state.color };
      const y = preview.code === state.y ? state.x : state.y;
      return { x: preview.code, y, color: preview.factor };
    }

    position(code, value, size, isVertical) {
      const { low, high, period } = this.app.model.facts[code];
      const wrapped = period === null ? value : ((value % period) + period) % period;
      const share = (wrapped - low) / (high - low);
      return PAD + (size - 2 * PAD) * (isVertical ? 1 - share : share);
    }

    place(z) {
      const { x, y } = this.view();
      return [this.position(x, z[x], this.width, false), this.position(y, z[y], this.height, true)];
    }

    draw() {
      this.width = this.plot.clientWidth;
      this.height = this.plot.clientHeight;
      const { model } = this.app;
      const context = UnweaveDom.fitCanvas(this.points, this.width, this.height);
      context.clearRect(0, 0, this.width, this.height);
      const scale = UnweaveDrawing.factorScale(model, this.view().color);
      this.positions = new Float32Array(2 * model.count);
      const byColor = new Map();
      for (let i = 0; i < model.count; i += 1) {
        this.positions.set(this.place(model.codesOf(i)), 2 * i);
        const color = scale.color(i);
        if (!byColor.has(color)) byColor.set(color, []);
        byColor.get(color).push(i);
      }
      const side = model.count > 1500 ? 3 : 5;
      context.globalAlpha = 0.75;
      for (const [color, rows] of byColor) {
        context.fillStyle = color;
        for (const i of rows) context.fillRect(this.positions[2 * i] - side / 2, this.positions[2 * i + 1] - side / 2, side, side);
      }
      this.drawLegend(scale);
      this.drawOverlay();
    }

    drawLegend(scale) {
      const { x, y } = this.view();
      const parts = [make("span", { text: `\u2192 ${this.axisName(x)}   \u2191 ${this.axisName(y)}` })];
      if (scale.name) parts.push(make("span", { text: `color: ${scale.name}` }));
      for (const { color, text } of scale.entries || []) {
        const swatch = make("span", { className: "swatch" });
        swatch.style.backgroundColor = color;
        parts.push(make("span", { className: "entry" }, swatch, text));
      }
      if (scale.ramp) {
        const bar = make("canvas", { width: 64, height: 8, className: "ramp" });
        const context = bar.getContext("2d");
        for (let i = 0; i < 64; i += 1) {
          context.fillStyle = scale.ramp(i / 63);
          context.fillRect(i, 0, 1, 8);
        }
        const [low, high] = scale.ends.map(UnweaveState.readable);
        parts.push(make("span", { className: "entry" }, low, bar, high));
      }
      this.legend.replaceChildren(...parts);
    }

    drawOverlay() {
      if (!this.width) return;
      const { state, z, model } = this.app;
      const context = UnweaveDom.fitCanvas(this.overlay, this.width, this.height);
      context.clearRect(0, 0, this.width, this.height);
      const start = this.place(model.codesOf(state.start));
      const current = this.place(z);
      context.lineWidth = 2;
      context.strokeStyle = style("--ink");
      context.beginPath();
      context.moveTo(...start);
      context.lineTo(...current);
      context.stroke();
      this.drawRing(context, start, 5, style("--page"));
      if (state.second >= 0) this.drawRing(context, this.place(model.codesOf(state.second)), 5, style("--second"));
      this.drawRing(context, current, 7, style("--mark"));
      if (this.hovered >= 0) this.drawRing(context, [this.positions[2 * this.hovered], this.positions[2 * this.hovered + 1]], 5, null);
    }

    drawRing(context, [x, y], radius, fill) {
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      if (fill) {
        context.fillStyle = fill;
        context.fill();
      }
      context.stroke();
    }

    nearestPoint(x, y) {
      let [best, least] = [-1, REACH * REACH];
      for (let i = 0; i < this.app.model.count; i += 1) {
        const distance = (this.positions[2 * i] - x) ** 2 + (this.positions[2 * i + 1] - y) ** 2;
        if (distance < least) [best, least] = [i, distance];
      }
      return best;
    }

    hover(event) {
      const row = this.nearestPoint(event.offsetX, event.offsetY);
      if (row === this.hovered) return;
      this.hovered = row;
      this.drawOverlay();
      this.showTip(row);
    }

    leave() {
      this.hovered = -1;
      this.tip.hidden = true;
      this.drawOverlay();
    }

    click(event) {
      const row = this.nearestPoint(event.offsetX, event.offsetY);
      if (row < 0) return;
      if (event.shiftKey || this.target.value === "second") this.app.setSecond(row);
      else this.app.setStart(row);
    }

    showTip(row) {
      this.tip.hidden = row < 0;
      if (row < 0) return;
      const { painter, model, panel } = this.app;
      const { width, height } = painter.cell;
      const canvas = make("canvas", { width, height });
      const observation = model.observed(row);
      if (observation.values || model.kind === "image") {
        painter.paint(canvas.getContext("2d"), observation, { x: 0, y: 0, width, height });
      }
      this.tip.replaceChildren(canvas, make("span", { text: panel.describeRow(row) }));
      const x = this.positions[2 * row];
      const y = this.positions[2 * row + 1];
      this.tip.style.left = `${Math.max(0, Math.min(x + 12, this.width - this.tip.offsetWidth))}px`;
      this.tip.style.top = `${y > this.height / 2 ? y - this.tip.offsetHeight - 12 : y + 12}px`;
    }

    update() {
      const { x, y, color } = this.view();
      for (const key of ["x", "y", "color"]) this.selects[key].value = String(this.app.state[key]);
      const key = [x, y, color, this.plot.clientWidth].join(",");
      if (key !== this.drawn) {
        this.drawn = key;
        this.draw();
      } else {
        this.drawOverlay();
      }
    }
  }

  return { ScatterMap };
})();
