"use strict";

// Matrices as tables: shades with numbers, which a screen reader can read.
const UnweaveMatrices = (() => {
  const { make } = UnweaveDom;
  const { showTip, hideTip } = UnweavePanels;
  const { readable } = UnweaveScales;
  const MAX_COLUMNS = 20; // of a matrix whose numbers are written

  function drawMatrix(plot) {
    return plot.panels.map((panel) => {
      const hasNumbers = !panel.texts && panel.columns.length <= MAX_COLUMNS;
      const heads = panel.columns.map((name) => make("th", { scope: "col" }, make("span", { text: name })));
      if (panel.ends) heads.push(make("th", { scope: "col", text: "mean at both ends" }));
      const rows = panel.rows.map((name, i) => {
        const cells = panel.values[i].map((value, j) => drawCell(panel, i, j, value, hasNumbers));
        if (panel.ends) cells.push(make("td", { className: "ends", text: panel.ends[i] }));
        return make("tr", {}, make("th", { scope: "row", text: name }), ...cells);
      });
      const head = make("thead", {}, make("tr", {}, make("td"), ...heads));
      const kind = `${hasNumbers ? "matrix" : "matrix plain"}${panel.ends ? " strips" : ""}`;
      const table = make("table", { className: kind }, head, make("tbody", {}, ...rows));
      table.addEventListener("pointerleave", hideTip);
      const title = panel.title ? [make("div", { className: "panel-title", text: panel.title })] : [];
      return make("div", { className: "panel matrix-panel" }, ...title, make("div", { className: "scroll" }, table));
    });
  }

  function drawCell(panel, i, j, value, hasNumbers) {
    const cell = make("td", { className: "cell", text: hasNumbers && value !== null ? value.toFixed(2) : "" });
    if (value === null) return cell;
    const share = Math.min(Math.abs(value), 1);
    cell.style.setProperty("--share", `${Math.round(100 * share)}%`);
    cell.classList.toggle("strong", share > 0.55);
    cell.classList.toggle("warm", panel.warm ? value > 0 : value < 0);
    const number = panel.texts ? panel.texts[i][j] : value;
    const lines = [panel.rows[i], panel.columns[j], readable(number)];
    const show = (event) => showTip(lines, event.clientX, event.clientY);
    cell.addEventListener("pointermove", show);
    cell.addEventListener("click", show);
    return cell;
  }

  return { drawMatrix };
})();
