"use strict";

// Wires the views: every change of the state draws the edited observation in the next animation frame, then the
// film strip in slices of frames.
const UnweaveExplorer = (() => {
  const { make } = UnweaveDom;
  const SLICE = 10; // milliseconds of a frame for the film strip
  const NUDGE = 0.02; // of the range of a code, for the keys
  const KEYS = [
    ["\u2190 \u2192", "move the selected code"],
    ["j, k", "select the next or previous code"],
    ["r", "start at a random observation"],
    ["s", "take a random second observation"],
    ["t", "take the selected code from the second observation"],
    ["x", "undo all edits"],
    ["c", "copy as Python"],
    ["p", "save as PNG"],
    ["g", "save the traversal of the selected code as GIF"],
    ["?", "show these keys"],
  ];

  class Explorer {
    constructor(model, otherModel) {
      this.model = model;
      this.otherModel = otherModel;
      this.limits = { count: model.count, codes: model.width, factors: model.factors.length };
      this.state = UnweaveState.fromHash(location.hash, UnweaveState.initialState(model.order, model.factors.length), this.limits);
      this.highlighted = -1;
      this.preview = null;
      this.isDirty = true;
      this.painter = new UnweaveDrawing.Painter(model);
      this.z = UnweaveState.editedCodes(this.state, (row) => model.codesOf(row));
      const place = (name) => document.getElementById(name);
      this.sliders = new UnweaveSliders.Sliders(this, place("sliders"));
      this.panel = new UnweavePanel.Panel(this, place("panel"));
      this.filmstrip = new UnweaveFilmstrip.Filmstrip(this, place("film"), this.lane());
      this.comparison = otherModel ? new UnweaveCompare.Comparison(this, otherModel, otherModel.matches) : null;
      this.strips = this.comparison ? [this.filmstrip, this.comparison.filmstrip] : [this.filmstrip];
      this.map = new UnweaveMap.ScatterMap(this, place("map"));
      this.matrix = new UnweaveMatrix.Matrix(this, place("matrix"));
      this.bindButtons();
      this.bindWindow();
      for (const strip of this.strips) strip.restart(-1);
      this.wake();
    }

    // What the film strip shows: all codes that are not dead, by importance.
    lane() {
      const { model, painter } = this;
      const codes = model.order.filter((code) => !model.facts[code].is_dead);
      const entries = codes.map((code) => ({ id: code, code }));
      return { model, painter, z: () => this.z, entries, pick: ({ code }, value) => this.setCode(code, value) };
    }

    // Changes of the state ---------------------------------------------------------------------------------------

    change(values, onlyCode = -1) {
      Object.assign(this.state, values);
      const z = UnweaveState.editedCodes(this.state, (row) => this.model.codesOf(row));
      const isMoved = z.some((value, j) => value !== this.z[j]);
      this.z = z;
      if (this.comparison) this.comparison.follow();
      if (isMoved) for (const strip of this.strips) strip.restart(onlyCode);
      this.isDirty = true;
      this.wake();
    }

    setCode(code, value) {
      const swapped = this.state.swapped.filter((other) => other !== code);
      this.change({ edits: { ...this.state.edits, [code]: value }, swapped, code }, code);
    }

    clearCode(code) {
      const { [code]: _, ...edits } = this.state.edits;
      this.change({ edits, swapped: this.state.swapped.filter((other) => other !== code) });
    }

    swapCode(code, isTaken) {
      const { [code]: _, ...edits } = this.state.edits;
      const others = this.state.swapped.filter((other) => other !== code);
      this.change({ edits, swapped: isTaken ? [...others, code] : others, code });
    }

    swapAll(isTaken) {
      this.change({ edits: {}, swapped: isTaken ? this.model.order.slice() : [] });
    }

    swapGroup(codes) {
      const isTaken = codes.every((code) => this.state.swapped.includes(code));
      const others = this.state.swapped.filter((code) => !codes.includes(code));
      const edits = Object.fromEntries(Object.entries(this.state.edits).filter(([code]) => !codes.includes(Number(code))));
      this.change({ edits, swapped: isTaken ? others : [...others, ...codes] });
    }

    setStart(row) {
      this.change({ start: row, edits: {}, swapped: [] });
    }

    setSecond(row) {
      this.change(row < 0 ? { second: -1, swapped: [] } : { second: row });
    }

    select(code) {
      if (code !== this.state.code) this.change({ code });
    }

    highlight(code) {
      this.highlighted = code;
      this.isLit = true;
      this.wake();
    }

    setPreview(preview) {
      this.preview = preview;
      this.highlight(preview ? preview.code : -1);
    }

    randomRow() {
      return Math.floor(Math.random() * this.model.startCount);
    }

    // Drawing ----------------------------------------------------------------------------------------------------

    wake() {
      if (!this.request) this.request = requestAnimationFrame(() => this.frame());
    }

    frame() {
      this.request = 0;
      const deadline = performance.now() + SLICE;
      if (this.isDirty) this.drawState();
      else if (this.isLit) this.drawLights();
      else this.drawStrips(deadline);
      this.isDirty = false;
      this.isLit = false;
      const isDrawing = this.strips.some((strip) => strip.queue.length);
      if (isDrawing) this.wake();
      document.body.dataset.ready = isDrawing ? "drawing" : "done";
    }

    drawStrips(deadline) {
      const strip = this.strips.find(({ queue }) => queue.length);
      if (strip) strip.work(deadline);
    }

    drawState() {
      this.panel.update(this.model.observe(this.z));
      this.drawLights();
      for (const strip of this.strips) strip.markValues();
      document.getElementById("swap-tools").hidden = this.state.second < 0;
      if (window.parent !== window) return; // a frame of a report has no address of its own
      const hash = UnweaveState.toHash(this.state);
      if (hash !== location.hash) history.replaceState(null, "", hash);
    }

    drawLights() {
      this.sliders.update();
      for (const strip of this.strips) strip.update();
      this.matrix.update();
      this.map.update();
    }

    redraw() {
      this.map.drawn = "";
      this.sliders.drawDensities();
      this.isDirty = true;
      this.wake();
    }

    // Input ------------------------------------------------------------------------------------------------------

    bindButtons() {
      const actions = {
        random: () => this.setStart(this.randomRow()),
        reset: () => this.change({ edits: {}, swapped: [] }),
        second: () => this.setSecond(this.randomRow()),
        "no-second": () => this.setSecond(-1),
        "swap-all": () => this.swapAll(true),
        "swap-none": () => this.swapAll(false),
        python: () => UnweaveExport.copyPython(this),
        png: () => UnweaveExport.savePng(this),
        gif: () => UnweaveExport.saveGif(this),
        keys: () => this.showKeys(),
      };
      for (const [name, action] of Object.entries(actions)) document.getElementById(`do-${name}`).addEventListener("click", action);
      const tools = document.getElementById("swap-tools");
      this.model.groups.forEach(({ name, codes }) => {
        tools.append(make("button", { type: "button", text: `Take ${name}`, onclick: () => this.swapGroup(codes) }));
      });
    }

    bindWindow() {
      window.addEventListener("keydown", (event) => this.press(event));
      window.addEventListener("resize", () => this.redraw());
      window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
      window.addEventListener("hashchange", () => {
        this.change(UnweaveState.fromHash(location.hash, this.state, this.limits));
      });
    }

    press(event) {
      const isForm = /^(SELECT|TEXTAREA)$/.test(event.target.tagName) || document.querySelector("dialog[open]");
      if (isForm || event.ctrlKey || event.altKey || event.metaKey) return;
      const isSlider = event.target.tagName === "INPUT" && event.target.type === "range";
      const actions = {
        j: () => this.step(1),
        k: () => this.step(-1),
        r: () => this.setStart(this.randomRow()),
        s: () => this.setSecond(this.randomRow()),
        t: () => this.state.second >= 0 && this.swapCode(this.state.code, !this.state.swapped.includes(this.state.code)),
        x: () => this.change({ edits: {}, swapped: [] }),
        c: () => UnweaveExport.copyPython(this),
        p: () => UnweaveExport.savePng(this),
        g: () => UnweaveExport.saveGif(this),
        "?": () => this.showKeys(),
      };
      if (!isSlider) Object.assign(actions, { ArrowLeft: () => this.nudge(-1), ArrowRight: () => this.nudge(1) });
      if (!Object.hasOwn(actions, event.key)) return;
      event.preventDefault();
      actions[event.key]();
    }

    step(direction) {
      const order = this.model.order.filter((code) => this.sliders.rows.has(code)); // not those of a closed fold
      const place = (order.indexOf(this.state.code) + direction + order.length) % order.length;
      this.change({ code: order[place] });
      this.sliders.focus(order[place]);
    }

    nudge(direction) {
      const { low, high } = this.model.facts[this.state.code];
      const value = this.z[this.state.code] + direction * NUDGE * (high - low);
      this.setCode(this.state.code, Math.min(Math.max(value, low), high));
    }

    showKeys() {
      const rows = KEYS.map(([key, text]) => make("tr", {}, make("th", { text: key }), make("td", { text })));
      const close = make("button", { type: "button", text: "Close", onclick: () => dialog.close() });
      const dialog = make("dialog", {}, make("h2", { text: "Keys" }), make("table", { className: "keys" }, ...rows), close);
      dialog.addEventListener("close", () => dialog.remove());
      document.body.append(dialog);
      dialog.showModal();
    }
  }

  async function start() {
    const { other, ...payload } = JSON.parse(document.getElementById("data").textContent);
    const model = new UnweaveModel.Model(payload);
    const otherModel = other ? new UnweaveModel.Model({ ...payload, ...other }) : null;
    for (const each of [model, otherModel]) if (each) await each.load(UnweaveDecoder, UnweaveDom.makeImage);
    return new Explorer(model, otherModel);
  }

  return { Explorer, start };
})();

window.addEventListener("DOMContentLoaded", () => {
  UnweaveExplorer.start().then(
    (app) => { window.unweaveExplorer = app; },
    (error) => { document.getElementById("status").textContent = `The page cannot be shown: ${error.message}`; },
  );
});
