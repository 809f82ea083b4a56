"use strict";

// The current observation: original, reconstruction, edited and difference; for tables a bar per column.
const UnweavePanel = (() => {
  const { make } = UnweaveDom;
  const SIDE = 160; // pixels of a picture
  const MAX_BARS = 200; // columns of a table that are shown
  const MAX_DEVIATIONS = 3; // at the end of a bar

  class Panel {
    constructor(app, container) {
      this.app = app;
      this.figures = new Map();
      const row = make("div", { className: "pictures" });
      if (app.model.kind === "image") {
        for (const [key, text] of this.parts()) row.append(this.makeFigure(key, text));
        container.append(row);
      } else {
        this.bars = this.makeBars();
        container.append(this.bars.element);
      }
      this.about = make("p", { className: "soft about" });
      container.append(this.about);
    }

    parts() {
      if (!this.app.model.hasDecoder) return [["original", "original"], ["edited", "nearest (observed)"], ["second", "second"]];
      const names = ["original", "reconstruction", "edited", "difference", "second"];
      return names.map((name) => [name, name === "difference" ? "edited \u2212 reconstruction" : name]);
    }

    makeFigure(key, text) {
      const canvas = make("canvas", { role: "img", "aria-label": text });
      const { width, height } = this.app.painter.cell;
      const factor = Math.max(1, Math.round(SIDE / Math.max(width, height)));
      canvas.width = width * factor;
      canvas.height = height * factor;
      const figure = make("figure", { "data-part": key }, canvas, make("figcaption", { text }));
      this.figures.set(key, { figure, canvas });
      return figure;
    }

    paint(key, draw) {
      const entry = this.figures.get(key);
      if (!entry) return;
      const { canvas } = entry;
      draw(canvas.getContext("2d"), { x: 0, y: 0, width: canvas.width, height: canvas.height });
    }

    update(edited) {
      const { app } = this;
      const { model, painter, state } = app;
      const original = model.observed(state.start);
      if (this.startShown !== state.start) {
        this.reconstruction = model.hasDecoder ? model.observe(model.codesOf(state.start)).values : null;
        this.startShown = state.start;
      }
      if (model.kind === "table") {
        this.updateBars(original.values || this.reconstruction, edited.values);
      } else {
        this.paint("original", (context, box) => painter.paint(context, original, box));
        this.paint("edited", (context, box) => painter.paint(context, edited, box));
        if (this.reconstruction) {
          this.paint("reconstruction", (context, box) => painter.paint(context, { values: this.reconstruction }, box));
          this.paint("difference", (context, box) => painter.paintDifference(context, this.reconstruction, edited.values, box));
        }
        this.figures.get("second").figure.hidden = state.second < 0;
        if (state.second >= 0) this.paint("second", (context, box) => painter.paint(context, model.observed(state.second), box));
      }
      this.about.textContent = this.describe(edited);
    }

    describe(edited) {
      const { model, state } = this.app;
      const parts = [`Start: ${this.describeRow(state.start)}.`];
      if (!model.hasDecoder) parts.push(`Nearest observation: ${this.describeRow(edited.row)}.`);
      if (state.second >= 0) parts.push(`Second: ${this.describeRow(state.second)}.`);
      return parts.join(" ");
    }

    describeRow(row) {
      const { model } = this.app;
      const name = model.rowNames ? model.rowNames[row] : `observation ${row + 1}`;
      const factors = model.factors.map((factor, j) => `${factor.name} ${model.factorText(j, row)}`);
      return factors.length ? `${name} (${factors.join(", ")})` : name;
    }

    makeBars() {
      const { model } = this.app;
      const rows = model.columns.slice(0, MAX_BARS).map((name) => {
        const bar = make("span", { className: "bar" });
        const mark = make("span", { className: "mark" });
        const value = make("span", { className: "value" });
        const label = make("span", { className: "column", text: name, title: name });
        return { bar, mark, value, element: make("div", { className: "bar-row" }, label, make("span", { className: "bar-track" }, bar, mark), value) };
      });
      const text = model.hasDecoder ? "Bar: edited. Line: original." : "Bar: nearest row (observed). Line: original.";
      const more = model.columns.length > MAX_BARS ? ` The first ${MAX_BARS} of ${model.columns.length} columns.` : "";
      const note = make("p", { className: "soft", text: `${text} In standard deviations from the mean of the column.${more}` });
      return { rows, element: make("div", { className: "bars" }, ...rows.map((row) => row.element), note) };
    }

    updateBars(original, edited) {
      const { model } = this.app;
      const place = (value, i) => {
        const deviations = (value - model.means[i]) / model.deviations[i];
        return 50 + (50 * Math.min(Math.max(deviations, -MAX_DEVIATIONS), MAX_DEVIATIONS)) / MAX_DEVIATIONS;
      };
      this.bars.rows.forEach(({ bar, mark, value }, i) => {
        const end = edited ? place(edited[i], i) : 50;
        bar.style.left = `${Math.min(end, 50)}%`;
        bar.style.width = `${Math.abs(end - 50)}%`;
        bar.classList.toggle("negative", end < 50);
        mark.hidden = !original;
        if (original) mark.style.left = `${place(original[i], i)}%`;
        value.textContent = edited ? UnweaveState.readable(edited[i]) : "";
      });
    }
  }

  return { Panel };
})();
