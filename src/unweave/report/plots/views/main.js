"use strict";

// Wires the page: tables, plots and explorers.
const UnweaveReport = (() => {
  const { make } = UnweaveDom;

  // Draw a plot into its figure; panels of observations refer to the last source before them.
  function drawPlot(plot, group, shared) {
    if (plot.source) shared.source = UnweaveScatter.readSource(plot.source);
    const kinds = {
      spread: () => UnweaveCharts.drawSpread(plot, group),
      effect: () => UnweaveCharts.drawEffect(plot, group),
      curves: () => UnweaveCharts.drawCurves(plot),
      bars: () => UnweaveCharts.drawBars(plot),
      scatter: () => UnweaveScatter.drawScatter(plot, shared.source, shared.repaints),
      matrix: () => UnweaveMatrices.drawMatrix(plot),
    };
    return kinds[plot.kind]();
  }

  function drawPlots(data, groups) {
    const shared = { source: null, repaints: [] };
    for (const [id, plot] of Object.entries(data.plots)) {
      const place = document.getElementById(id);
      if (plot.columns) place.classList.add(`columns-${Math.min(plot.columns, 5)}`);
      place.replaceChildren(...drawPlot(plot, groups.get(place.closest("section").id), shared));
    }
    UnweaveScales.dark.addEventListener("change", () => shared.repaints.forEach((repaint) => repaint()));
  }

  // Make the frame of an explorer at the first click, then show and hide it.
  function bindExplorer(button) {
    let frame = null;
    button.addEventListener("click", () => {
      if (frame === null) {
        const html = JSON.parse(document.getElementById(button.dataset.explorer).textContent);
        frame = make("iframe", { className: "explorer", title: button.dataset.title, srcdoc: html });
        button.parentElement.append(frame);
      } else {
        frame.hidden = !frame.hidden;
      }
      button.ariaExpanded = String(!frame.hidden);
      button.textContent = frame.hidden ? "Explore this run" : "Hide the explorer";
    });
  }

  function start() {
    const data = JSON.parse(document.getElementById("report-data").textContent);
    const groups = new Map(Object.entries(data.groups).map(([id, runs]) => [id, new UnweaveTables.Group(document.getElementById(id), runs)]));
    drawPlots(data, groups);
    document.querySelectorAll("[data-explorer]").forEach(bindExplorer);
    document.body.dataset.ready = "done";
  }

  return { start };
})();

UnweaveReport.start();
