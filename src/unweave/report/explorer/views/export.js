"use strict";

// PNG of the pictures and the film strip, GIF of a traversal, and Python code of the current point.
const UnweaveExport = (() => {
  const { make, style } = UnweaveDom;
  const GAP = 12;
  const LINE = 18;
  const FRAMES = 20; // of a GIF in one direction; it runs back again
  const DELAY = 6; // hundredths of a second per frame

  // Return one canvas with the pictures of the panel in a row, and the rows of the film strip below.
  function compose(app) {
    const figures = [...app.panel.figures.entries()].filter(([, entry]) => !entry.figure.hidden);
    const strips = app.strips.map((strip) => strip.rows);
    const [rows] = strips;
    const pictures = figures.reduce((sum, [, entry]) => sum + entry.canvas.width + GAP, 0);
    const top = figures.length ? figures[0][1].canvas.height + LINE + GAP : 0;
    const film = rows.length ? rows[0].canvas : { width: 0, height: 0 };
    const canvas = make("canvas", {
      width: GAP + Math.max(pictures, strips.length * (film.width + GAP)),
      height: GAP + top + rows.length * (film.height + LINE),
    });
    const context = canvas.getContext("2d");
    context.fillStyle = style("--page");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = style("--ink");
    context.font = "12px system-ui, sans-serif";
    let x = GAP;
    for (const [, { figure, canvas: picture }] of figures) {
      context.drawImage(picture, x, GAP);
      context.fillText(figure.querySelector("figcaption").textContent, x, GAP + picture.height + 13, picture.width);
      x += picture.width + GAP;
    }
    strips.forEach((own, place) => own.forEach((row, i) => {
      const [left, y] = [GAP + place * (film.width + GAP), GAP + top + i * (film.height + LINE)];
      const label = row.element.querySelector(".film-name"), names = [...label.children].map((part) => part.textContent);
      context.fillText(names.join(" ") || label.textContent, left, y + 12);
      context.drawImage(row.canvas, left, y + LINE - 2);
    }));
    return canvas;
  }

  function download(blob, name) {
    const link = make("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function savePng(app) {
    for (const strip of app.strips) strip.work(Infinity);
    compose(app).toBlob((blob) => download(blob, "explore.png"));
  }

  // Return the frames of the traversal of a code from the current point, forth and back.
  function traversalFrames(app, code) {
    const { model, painter, panel } = app;
    const size = panel.figures.has("edited") ? panel.figures.get("edited").canvas : painter.cell;
    const canvas = make("canvas", { width: size.width, height: size.height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const { width, height } = canvas;
    const frames = UnweaveState.traversal(model.facts[code], FRAMES).map((value) => {
      const z = Float32Array.from(app.z);
      z[code] = value;
      painter.paint(context, model.observe(z), { x: 0, y: 0, width, height });
      return context.getImageData(0, 0, width, height);
    });
    return [...frames, ...frames.slice(1, -1).reverse()];
  }

  function makeGif(app, code) {
    return UnweaveGif.encode(traversalFrames(app, code), DELAY);
  }

  function saveGif(app) {
    const { code } = app.state;
    download(new Blob([makeGif(app, code)], { type: "image/gif" }), `code-${code + 1}.gif`);
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

  return { compose, savePng, makeGif, saveGif, copyPython };
})();
