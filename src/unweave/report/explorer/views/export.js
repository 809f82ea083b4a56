"use strict";

// PNG of the pictures and the film strip, and Python code of the current point.
const UnweaveExport = (() => {
  const { make, style } = UnweaveDom;
  const GAP = 12;
  const LINE = 18;

  // Return one canvas with the pictures of the panel in a row, and the rows of the film strip below.
  function compose(app) {
    const figures = [...app.panel.figures.entries()].filter(([, entry]) => !entry.figure.hidden);
    const { rows } = app.filmstrip;
    const pictures = figures.reduce((sum, [, entry]) => sum + entry.canvas.width + GAP, 0);
    const top = figures.length ? figures[0][1].canvas.height + LINE + GAP : 0;
    const film = rows.length ? rows[0].canvas : { width: 0, height: 0 };
    const canvas = make("canvas", {
      width: GAP + Math.max(pictures, film.width + GAP),
      height: GAP + top + rows.length * (film.height + LINE),
    });
    const context = canvas.getContext("2d");
    context.fillStyle = style("--page");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = style("--ink");
    context.font = "12px system-ui, sans-serif";
    let x = GAP;
    for (const [name, { canvas: picture }] of figures) {
      context.drawImage(picture, x, GAP);
      context.fillText(name, x, GAP + picture.height + 13);
      x += picture.width + GAP;
    }
    rows.forEach((row, i) => {
      const y = GAP + top + i * (film.height + LINE);
      context.fillText(app.model.codeName(row.code), GAP, y + 12);
      context.drawImage(row.canvas, GAP, y + LINE - 2);
    });
    return canvas;
  }

  function savePng(app) {
    app.filmstrip.work(Infinity);
    compose(app).toBlob((blob) => {
      const link = make("a", { href: URL.createObjectURL(blob), download: "explore.png" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  function copyPython(app) {
    const { model } = app;
    const settings = { path: model.path, hasDecoder: model.hasDecoder, shape: model.shape };
    const text = UnweaveState.toPython(app.z, settings);
    const area = make("textarea", { readonly: "", rows: 12, "aria-label": "Python code", spellcheck: "false" });
    area.value = text;
    const close = make("button", { type: "button", text: "Close", onclick: () => dialog.close() });
    const note = make("p", { className: "soft", text: "Press Ctrl+C to copy." });
    const dialog = make("dialog", {}, make("h2", { text: "This point in Python" }), area, note, close);
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    area.select();
    const copied = () => { note.textContent = "Copied."; };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(copied, () => {});
  }

  return { compose, savePng, copyPython };
})();
