"use strict";

// Codes x factors: mutual information, or importance as in DCI. Hovering a cell lights slider and map.
const UnweaveMatrix = (() => {
  const { make, fillSelect } = UnweaveDom;
  const MAX_CODES = 50;
  const LEGIBLE = 0.05; // values below are not written

  class Matrix {
    constructor(app, container) {
      this.app = app;
      this.rows = new Map();
      const { model } = app;
      if (!model.scored.length) {
        container.append(make("p", { className: "soft", text: "The data have no factors to compare the codes with." }));
        return;
      }
      this.kind = make("select", { "aria-label": "what the matrix shows" });
      fillSelect(this.kind, [["information", "mutual information"], ["importance", "DCI importance"]], "information");
      this.kind.addEventListener("change", () => this.fill());
      this.body = make("tbody");
      const names = model.scored.map((factor) => make("th", { scope: "col", text: model.factors[factor].name }));
      const head = make("thead", {}, make("tr", {}, make("th", { scope: "col", text: "" }), ...names));
      const table = make("div", { className: "scroll" }, make("table", { className: "matrix" }, head, this.body));
      this.note = make("p", { className: "soft" });
      container.append(make("div", { className: "controls" }, this.kind), table, this.note);
      this.body.addEventListener("pointerleave", () => app.setPreview(null));
      this.fill();
    }

    fill() {
      const { model } = this.app;
      const values = model[this.kind.value];
      const codes = model.order.filter((code) => !model.facts[code].is_dead).slice(0, MAX_CODES);
      this.rows.clear();
      this.body.replaceChildren(...codes.map((code) => {
        const cells = model.scored.map((factor, k) => this.makeCell(code, factor, values[k][code]));
        const row = make("tr", {}, make("th", { scope: "row", text: model.codeName(code) }), ...cells);
        this.rows.set(code, row);
        return row;
      }));
      this.note.textContent = this.kind.value === "information"
        ? "Share of the factor's entropy that the code contains, above chance."
        : "Share of the code in predicting the factor by trees.";
    }

    makeCell(code, factor, value) {
      const percent = Math.round(100 * value);
      const cell = make("td", { text: value >= LEGIBLE ? String(percent) : "", title: `${percent} %` });
      cell.style.setProperty("--share", `${percent}%`);
      cell.classList.toggle("strong", value > 0.55);
      cell.addEventListener("pointerenter", () => this.app.setPreview({ code, factor }));
      cell.addEventListener("click", () => this.app.change({ code, x: code, y: this.otherAxis(code), color: factor }));
      return cell;
    }

    otherAxis(code) {
      const { x, y } = this.app.state;
      return code === y ? x : y;
    }

    update() {
      for (const [code, row] of this.rows) {
        row.classList.toggle("lit", code === this.app.highlighted || code === this.app.state.code);
      }
    }
  }

  return { Matrix };
})();
