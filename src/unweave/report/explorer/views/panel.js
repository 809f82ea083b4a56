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
      const { model, otherModel } = this.app;
      const edited = { decoder: "edited", grid: "edited (nearest decoded)", observed: "nearest (observed)" };
      const parts = [["original", "original"]];
      if (model.source !== "observed") parts.push(["reconstruction", "recon\u00adstruction"]);
      parts.push(["edited", otherModel ? `${edited[model.source]}, ${model.name}` : edited[model.source]]);
      if (otherModel) parts.push(["other", `${edited[otherModel.source]}, ${otherModel.name}`]);
      if (model.hasDecoder) parts.push(["difference", "difference"]);
      return [...parts, ["second", "second"]];
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
        this.reconstruction = model.source === "observed" ? null : model.observe(model.codesOf(state.start));
        this.startShown = state.start;
      }
      if (model.kind === "table") {
        const second = state.second >= 0 ? model.observed(state.second).values : null;
        const other = app.comparison ? app.otherModel.observe(app.comparison.z).values : second;
        this.updateBars(original.values || (this.reconstruction && this.reconstruction.values), edited.values, other);
      } else {
        this.paint("original", (context, box) => painter.paint(context, original, box));
        this.paint("edited", (context, box) => painter.paint(context, edited, box));
        if (this.reconstruction) {
          this.paint("reconstruction", (context, box) => painter.paint(context, this.reconstruction, box));
        }
        if (model.hasDecoder) {
          const { values } = this.reconstruction;
          this.paint("difference", (context, box) => painter.paintDifference(context, values, edited.values, box));
        }
        this.paintOther();
        this.figures.get("second").figure.hidden = state.second < 0;
        if (state.second >= 0) this.paint("second", (context, box) => painter.paint(context, model.observed(state.second), box));
      }
      this.about.textContent = this.describe(edited);
    }

    paintOther() {
      const { comparison, otherModel } = this.app;
      if (!comparison) return;
      const observation = otherModel.observe(comparison.z);
      this.paint("other", (context, box) => comparison.painter.paint(context, observation, box));
    }

    describe(edited) {
      const { model, state } = this.app;
      const parts = [`Start: ${this.describeRow(state.start)}.`];
      if (model.source === "observed") parts.push(`Nearest observation: ${this.describeRow(edited.row)}.`);
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
        const second = make("span", { className: "mark other", hidden: "" });
        const value = make("span", { className: "value" });
        const label = make("span", { className: "column", text: name, title: name });
        const track = make("span", { className: "bar-track" }, bar, mark, second);
        return { bar, mark, second, value, element: make("div", { className: "bar-row" }, label, track, value) };
      });
      const bars = { decoder: "Bar: edited.", grid: "Bar: edited (nearest decoded).", observed: "Bar: nearest row (observed)." };
      const other = ` Orange line: ${this.app.otherModel ? `edited, ${this.app.otherModel.name}` : "second observation"}.`;
      const text = `${bars[model.source]} Line: original.${other}`;
      const more = model.columns.length > MAX_BARS ? ` The first ${MAX_BARS} of ${model.columns.length} columns.` : "";
      const note = make("p", { className: "soft", text: `${text} In standard deviations from the mean of the column.${more}` });
      return { rows, element: make("div", { className: "bars" }, ...rows.map((row) => row.element), note) };
    }

    updateBars(original, edited, other) {
      const { model } = this.app;
      const place = (value, i) => {
        const deviations = (value - model.means[i]) / model.deviations[i];
        return 50 + (50 * Math.min(Math.max(deviations, -MAX_DEVIATIONS), MAX_DEVIATIONS)) / MAX_DEVIATIONS;
      };
      this.bars.rows.forEach(({ bar, mark, second, value }, i) => {
        const end = edited ? place(edited[i], i) : 50;
        bar.style.left = `${Math.min(end, 50)}%`;
        bar.style.width = `${Math.abs(end - 50)}%`;
        bar.classList.toggle("negative", end < 50);
        mark.hidden = !original;
        if (original) mark.style.left = `${place(original[i], i)}%`;
        second.hidden = !other;
        if (other) second.style.left = `${place(other[i], i)}%`;
        value.textContent = edited ? UnweaveState.readable(edited[i]) : "";
      });
    }
  }

  return { Panel };
})();
