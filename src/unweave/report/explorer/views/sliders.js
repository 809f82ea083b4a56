"use strict";

// One slider per code, the most important first: density behind the track, best factor, dead codes folded away.
const UnweaveSliders = (() => {
  const { make, style } = UnweaveDom;
  const SHOWN = 24; // codes before the others are folded away
  const STEPS = 200; // positions of a slider

  class Sliders {
    constructor(app, container) {
      this.app = app;
      this.rows = new Map();
      const { order, facts } = app.model;
      const alive = order.filter((code) => !facts[code].is_dead);
      const dead = order.filter((code) => facts[code].is_dead);
      container.append(...alive.slice(0, SHOWN).map((code) => this.makeRow(code)));
      this.fold(container, alive.slice(SHOWN), (count) => `${count} more ${count === 1 ? "code" : "codes"}`);
      this.fold(container, dead, (count) => `${count} dead ${count === 1 ? "code" : "codes"}`);
    }

    // Rows of folded codes are made when they are first opened: a flow has hundreds.
    fold(container, codes, text) {
      if (!codes.length) return;
      const details = make("details", { className: "folded" }, make("summary", { text: text(codes.length) }));
      details.addEventListener("toggle", () => {
        if (details.open && details.childElementCount === 1) {
          details.append(...codes.map((code) => this.makeRow(code)));
          this.update();
        }
      });
      container.append(details);
    }

    makeRow(code) {
      const { app } = this;
      const fact = app.model.facts[code];
      const name = app.model.codeName(code);
      const step = (fact.high - fact.low) / STEPS;
      const input = make("input", { type: "range", min: fact.low, max: fact.high, step, "aria-label": name });
      const output = make("output", { className: "value" });
      const density = make("canvas", { className: "density", "aria-hidden": "true" });
      const swap = make("input", { type: "checkbox", "aria-label": `take ${name} from the second observation` });
      const label = make("label", { className: "swap" }, swap, make("span", { text: "second" }));
      const head = make("div", { className: "head" }, make("strong", { text: name }), this.factorLabel(fact), output, label);
      const row = make("div", { className: "code", "data-code": code }, head, make("div", { className: "track" }, density, input));
      input.addEventListener("input", () => app.setCode(code, Number(input.value)));
      input.addEventListener("focus", () => app.select(code));
      swap.addEventListener("change", () => app.swapCode(code, swap.checked));
      row.addEventListener("pointerenter", () => app.highlight(code));
      row.addEventListener("pointerleave", () => app.highlight(-1));
      row.addEventListener("dblclick", () => app.clearCode(code));
      this.rows.set(code, { row, input, output, density, swap, label });
      return row;
    }

    factorLabel(fact) {
      if (fact.factor < 0) return make("span", { className: "factor none", text: "" });
      const { name } = this.app.model.factors[fact.factor];
      const share = `${Math.round(100 * fact.score)} %`;
      const title = `This code contains ${share} of the entropy of ${name} (mutual information above chance).`;
      return make("span", { className: "factor", title }, make("span", { className: "name", text: name }), ` ${share}`);
    }

    drawDensity(canvas, fact) {
      const width = canvas.clientWidth;
      const height = canvas.clientHeight;
      if (!width) return;
      const context = UnweaveDom.fitCanvas(canvas, width, height);
      const bin = width / fact.counts.length;
      const most = Math.max(1, ...fact.counts);
      context.fillStyle = style("--empty");
      for (const [first, end] of UnweaveState.emptyRegions(fact.counts)) {
        context.fillRect(first * bin, 0, (end - first) * bin, height);
      }
      context.fillStyle = style("--density");
      fact.counts.forEach((count, i) => {
        const size = count ? Math.max(1, (height * count) / most) : 0;
        context.fillRect(i * bin, height - size, bin + 0.5, size);
      });
    }

    drawDensities() {
      for (const [code, { density }] of this.rows) this.drawDensity(density, this.app.model.facts[code]);
    }

    update() {
      const { app } = this;
      for (const [code, { row, input, output, density, swap, label }] of this.rows) {
        const value = app.z[code];
        if (Number(input.value) !== value) input.value = value;
        output.textContent = UnweaveState.readable(value);
        swap.checked = app.state.swapped.includes(code);
        label.hidden = app.state.second < 0;
        row.classList.toggle("edited", code in app.state.edits);
        row.classList.toggle("swapped", swap.checked);
        row.classList.toggle("selected", code === app.state.code);
        row.classList.toggle("lit", code === app.highlighted);
        if (density.clientWidth && !density.dataset.drawn) {
          this.drawDensity(density, app.model.facts[code]);
          density.dataset.drawn = "yes";
        }
      }
    }

    focus(code) {
      const entry = this.rows.get(code);
      if (!entry) return;
      const fold = entry.row.closest("details");
      if (fold) fold.open = true;
      entry.input.focus({ preventScroll: false });
    }
  }

  return { Sliders };
})();
