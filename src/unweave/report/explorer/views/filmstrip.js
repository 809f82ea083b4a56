"use strict";

// Traversals of the codes from the current point, drawn a few cells per animation frame. A strip belongs to a lane:
//   model, painter, z(): whose codes are moved and how they look
//   entries: [{id, code, isReversed}], where id is the code of the first model and code that of this one, -1 for none
//   pick(entry, value): what a click on a cell does
const UnweaveFilmstrip = (() => {
  const { make } = UnweaveDom;
  const STEPS = 9;
  const STEPS_BESIDE = 5; // where two strips share the width
  const ROWS = 12; // at first, and more with each press of the button
  const GAP = 3;
  const FOOT = 5; // pixels below a row, for the mark of the current value

  class Filmstrip {
    constructor(app, container, lane) {
      this.app = app;
      this.lane = lane;
      this.steps = app.otherModel ? STEPS_BESIDE : STEPS;
      this.rows = [];
      this.queue = [];
      this.follower = null; // a strip beside this one, which shows the same rows
      this.list = make("div", { className: "film" });
      this.button = make("button", { type: "button", text: "More rows", onclick: () => this.grow() });
      container.append(this.list, this.button);
      this.grow();
    }

    grow() {
      const next = this.lane.entries.slice(this.rows.length, this.rows.length + ROWS);
      const rows = next.map((entry) => this.makeRow(entry));
      this.rows.push(...rows);
      this.list.append(...rows.map((row) => row.element));
      this.button.hidden = this.rows.length >= this.lane.entries.length || Boolean(this.lane.isFollower);
      this.enqueue(rows);
      if (this.follower) this.follower.grow();
      this.app.wake();
    }

    makeRow(entry) {
      const { model, painter, pick } = this.lane;
      const canvas = make("canvas", { role: "img" });
      canvas.width = this.steps * (painter.cell.width + GAP) - GAP;
      canvas.height = painter.cell.height + FOOT;
      const element = make("div", { className: "film-row", "data-code": entry.id }, this.makeName(entry), canvas);
      element.addEventListener("pointerenter", () => this.app.highlight(entry.id));
      element.addEventListener("pointerleave", () => this.app.highlight(-1));
      if (entry.code < 0) return { ...entry, canvas, element, values: [] };
      canvas.setAttribute("aria-label", `observations along ${model.codeName(entry.code)}`);
      const values = UnweaveState.traversal(model.facts[entry.code], this.steps);
      if (entry.isReversed) values.reverse();
      canvas.addEventListener("click", (event) => {
        const place = Math.floor((this.steps * event.offsetX) / canvas.clientWidth);
        pick(entry, values[Math.min(Math.max(place, 0), this.steps - 1)]);
      });
      return { ...entry, canvas, element, values };
    }

    makeName(entry) {
      const { model } = this.lane;
      if (entry.code < 0) return make("span", { className: "film-name none soft", text: "no counterpart" });
      const name = make("span", { className: "film-name" }, make("strong", { text: model.codeName(entry.code) }));
      const { factor } = model.facts[entry.code];
      const text = entry.note || (factor >= 0 ? model.factors[factor].name : "");
      if (text) name.append(make("span", { className: "soft", text }));
      return name;
    }

    // Draw all rows again, except that of a code that alone has changed: its row stays the same.
    restart(exceptCode) {
      const isComplete = this.queue.length === 0;
      this.enqueue(this.rows.filter((row) => !isComplete || row.id !== exceptCode), true);
      this.markValues();
    }

    enqueue(rows, replace = false) {
      const cells = rows.flatMap((row) => row.values.map((value, place) => ({ row, value, place })));
      this.queue = replace ? cells : [...this.queue, ...cells];
    }

    // Draw cells until the time is over, at least one; return whether some are left.
    work(deadline) {
      const { model, painter } = this.lane;
      const z = this.lane.z();
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
      const { painter, model } = this.lane;
      const z = this.lane.z();
      for (const { code, canvas, values } of this.rows) {
        if (code < 0) continue;
        const context = canvas.getContext("2d");
        const { width, height } = painter.cell;
        const step = values[1] - values[0] || 1;
        const period = model.facts[code].period;
        const value = period === null ? z[code] : ((z[code] % period) + period) % period;
        const x = Math.min(Math.max((value - values[0]) / step, 0), this.steps - 1) * (width + GAP) + width / 2;
        context.clearRect(0, height, canvas.width, FOOT);
        context.fillStyle = UnweaveDom.style("--mark");
        context.fillRect(x - 8, height + 1, 16, FOOT - 1);
      }
    }

    update() {
      for (const { id, element } of this.rows) {
        element.classList.toggle("lit", id === this.app.highlighted || id === this.app.state.code);
      }
    }
  }

  return { Filmstrip };
})();
