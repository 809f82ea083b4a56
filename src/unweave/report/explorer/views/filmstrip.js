"use strict";

// Traversals of the codes from the current point, drawn a few cells per animation frame.
const UnweaveFilmstrip = (() => {
  const { make } = UnweaveDom;
  const STEPS = 9;
  const ROWS = 12; // at first, and more with each press of the button
  const GAP = 3;
  const FOOT = 5; // pixels below a row, for the mark of the current value

  class Filmstrip {
    constructor(app, container) {
      this.app = app;
      this.rows = [];
      this.queue = [];
      this.list = make("div", { className: "film" });
      this.button = make("button", { type: "button", text: "More rows", onclick: () => this.grow() });
      container.append(this.list, this.button);
      this.codes = app.model.order.filter((code) => !app.model.facts[code].is_dead);
      this.grow();
    }

    grow() {
      const next = this.codes.slice(this.rows.length, this.rows.length + ROWS);
      const rows = next.map((code) => this.makeRow(code));
      this.rows.push(...rows);
      this.list.append(...rows.map((row) => row.element));
      this.button.hidden = this.rows.length >= this.codes.length;
      this.enqueue(rows);
      this.app.wake();
    }

    makeRow(code) {
      const { model, painter } = this.app;
      const canvas = make("canvas", { role: "img", "aria-label": `observations along ${model.codeName(code)}` });
      canvas.width = STEPS * (painter.cell.width + GAP) - GAP;
      canvas.height = painter.cell.height + FOOT;
      const { factor } = model.facts[code];
      const name = make("span", { className: "film-name" }, make("strong", { text: model.codeName(code) }));
      if (factor >= 0) name.append(make("span", { className: "soft", text: model.factors[factor].name }));
      const element = make("div", { className: "film-row", "data-code": code }, name, canvas);
      const values = UnweaveState.traversal(model.facts[code], STEPS);
      canvas.addEventListener("click", (event) => {
        const place = Math.floor((STEPS * event.offsetX) / canvas.clientWidth);
        this.app.setCode(code, values[Math.min(Math.max(place, 0), STEPS - 1)]);
      });
      element.addEventListener("pointerenter", () => this.app.highlight(code));
      element.addEventListener("pointerleave", () => this.app.highlight(-1));
      return { code, canvas, element, values };
    }

    // Draw all rows again, except that of a code that alone has changed: its row stays the same.
    restart(exceptCode) {
      const isComplete = this.queue.length === 0;
      this.enqueue(this.rows.filter((row) => !isComplete || row.code !== exceptCode), true);
      this.markValues();
    }

    enqueue(rows, replace = false) {
      const cells = rows.flatMap((row) => row.values.map((value, place) => ({ row, value, place })));
      this.queue = replace ? cells : [...this.queue, ...cells];
    }

    // Draw cells until the time is over, at least one; return whether some are left.
    work(deadline) {
      const { model, painter, z } = this.app;
      const codes = Float32Array.from(z);
      while (this.queue.length) {
        const { row, value, place } = this.queue.shift();
        codes.set(z);
        codes[row.code] = value;
        const { width, height } = painter.cell;
        painter.paint(row.canvas.getContext("2d"), model.observe(codes), { x: place * (width + GAP), y: 0, width, height });
        if (performance.now() >= deadline) break;
      }
      return this.queue.length > 0;
    }

    markValues() {
      const { painter, z, model } = this.app;
      for (const { code, canvas, values } of this.rows) {
        const context = canvas.getContext("2d");
        const { width, height } = painter.cell;
        const step = values[1] - values[0] || 1;
        const period = model.facts[code].period;
        const value = period === null ? z[code] : ((z[code] % period) + period) % period;
        const x = Math.min(Math.max((value - values[0]) / step, 0), STEPS - 1) * (width + GAP) + width / 2;
        context.clearRect(0, height, canvas.width, FOOT);
        context.fillStyle = UnweaveDom.style("--mark");
        context.fillRect(x - 8, height + 1, 16, FOOT - 1);
      }
    }

    update() {
      for (const { code, element } of this.rows) {
        element.classList.toggle("lit", code === this.app.highlighted || code === this.app.state.code);
      }
    }
  }

  return { Filmstrip };
})();
