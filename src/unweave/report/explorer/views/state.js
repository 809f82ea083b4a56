"use strict";

// State of the page: pure functions, without a document. The state is stored in the address.
//   start: observation that the codes begin at; edits: {code: value} of moved sliders
//   second: observation to take codes from, -1 for none; swapped: codes that are taken from it
//   x, y: codes on the axes of the map; color: factor of the map, -1 for none; code: the selected code
const UnweaveState = (() => {
  function initialState(order, factorCount) {
    const second = order.length > 1 ? order[1] : order[0];
    const color = factorCount > 0 ? 0 : -1;
    return { start: 0, edits: {}, second: -1, swapped: [], x: order[0], y: second, color, code: order[0] };
  }

  function toHash(state) {
    const edits = Object.keys(state.edits).map((code) => `${code}:${shortNumber(state.edits[code])}`);
    const parts = [`i=${state.start}`];
    if (edits.length) parts.push(`e=${edits.join(",")}`);
    if (state.second >= 0) parts.push(`s=${state.second}`);
    if (state.swapped.length) parts.push(`t=${state.swapped.join(",")}`);
    parts.push(`m=${state.x},${state.y},${state.color}`, `c=${state.code}`);
    return `#${parts.join("&")}`;
  }

  // Read an address; whatever is not a valid number keeps the value of `fallback`.
  function fromHash(hash, fallback, limits) {
    const fields = new Map(hash.replace(/^#/, "").split("&").map((part) => part.split("=")));
    const state = { ...fallback, edits: {}, swapped: [] };
    state.start = wholeNumber(fields.get("i"), 0, limits.count, fallback.start);
    state.second = wholeNumber(fields.get("s"), 0, limits.count, -1);
    state.code = wholeNumber(fields.get("c"), 0, limits.codes, fallback.code);
    const axes = (fields.get("m") || "").split(",");
    state.x = wholeNumber(axes[0], 0, limits.codes, fallback.x);
    state.y = wholeNumber(axes[1], 0, limits.codes, fallback.y);
    state.color = wholeNumber(axes[2], -1, limits.factors, fallback.color);
    for (const edit of (fields.get("e") || "").split(",")) {
      const [code, value] = edit.split(":");
      const j = wholeNumber(code, 0, limits.codes, -1);
      if (j >= 0 && value && Number.isFinite(Number(value))) state.edits[j] = Number(value);
    }
    if (state.second >= 0) {
      const codes = (fields.get("t") || "").split(",").map((code) => wholeNumber(code, 0, limits.codes, -1));
      state.swapped = [...new Set(codes.filter((j) => j >= 0))];
    }
    return state;
  }

  function wholeNumber(text, low, end, fallback) {
    if (!/^-?\d+$/.test(text || "")) return fallback;
    const value = Number(text);
    return value >= low && value < end ? value : fallback;
  }

  // Return the codes of the edited observation: those of the start, then those of the second, then the sliders.
  function editedCodes(state, codesOf) {
    const z = Float32Array.from(codesOf(state.start));
    if (state.second >= 0) {
      const other = codesOf(state.second);
      for (const j of state.swapped) z[j] = other[j];
    }
    for (const j of Object.keys(state.edits)) z[j] = state.edits[j];
    return z;
  }

  // Return codes of a second model that move with those of the first: counterparts of edited codes by as many
  // deviations, counterparts of swapped codes to the value of the second observation. Models have codesOf(row) and
  // statistics [{deviation}]; matches are [{code, sign}] for every code of the first model.
  function matchedCodes(state, model, other, matches) {
    const z = Float32Array.from(other.codesOf(state.start));
    const start = model.codesOf(state.start);
    for (const i of state.second >= 0 ? state.swapped : []) {
      const { code } = matches[i];
      if (code >= 0) z[code] = other.codesOf(state.second)[code];
    }
    for (const i of Object.keys(state.edits)) {
      const { code, sign } = matches[i];
      if (code < 0) continue;
      const steps = (state.edits[i] - start[i]) / model.statistics[i].deviation;
      z[code] = other.codesOf(state.start)[code] + sign * steps * other.statistics[code].deviation;
    }
    return z;
  }

  // Return Python code that computes the edited observation.
  function toPython(z, settings) {
    const values = Array.from(z, shortNumber);
    const lines = [];
    for (let i = 0; i < values.length; i += 8) lines.push(`    ${values.slice(i, i + 8).join(", ")},`);
    const head = ["import numpy as np", "import unweave", "", `method = unweave.load(${JSON.stringify(settings.path)})`];
    const codes = ["z = np.array([[", ...lines, "]], dtype=np.float32)"];
    const tail = settings.hasDecoder
      ? [`x = method.inverse_transform(z)  # (1, ${settings.shape.join(", ")})`]
      : ["# The method has no decoder: the page shows the observation with the nearest codes."];
    return [...head, ...codes, ...tail, ""].join("\n");
  }

  // Return the values of code facts at the cells of a film strip; the last cell of an angle is the first again.
  function traversal(fact, steps) {
    const values = [];
    for (let i = 0; i < steps; i += 1) values.push(fact.lower + ((fact.upper - fact.lower) * i) / (steps - 1));
    return values;
  }

  // Return runs of empty bins as [first, end) pairs: regions of a slider without data.
  function emptyRegions(counts) {
    const regions = [];
    counts.forEach((count, i) => {
      const last = regions[regions.length - 1];
      if (count > 0) return;
      if (last && last[1] === i) last[1] = i + 1;
      else regions.push([i, i + 1]);
    });
    return regions;
  }

  function shortNumber(value) {
    return String(Number(Number(value).toPrecision(6)));
  }

  function readable(value) {
    const size = Math.abs(value);
    if (size >= 1e5 || (size > 0 && size < 1e-3)) return value.toExponential(1);
    return String(Number(value.toPrecision(3))).replace("-", "\u2212");
  }

  return { initialState, toHash, fromHash, editedCodes, matchedCodes, toPython, traversal, emptyRegions, readable };
})();

if (typeof module !== "undefined") module.exports = UnweaveState;
