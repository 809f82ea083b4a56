"use strict";

// The data of the page, and what an observation with given codes looks like: decoded here, the nearest of those that
// were decoded beforehand (grid), or the nearest observed one.
const UnweaveModel = (() => {
  function toFloats(text) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return new Float32Array(bytes.buffer);
  }

  // Return mean and deviation of each code, in whose units distances are computed.
  function codeStatistics(codes, count, facts) {
    const width = facts.length;
    return facts.map((fact, j) => {
      let [sum, squares] = [0, 0];
      for (let i = 0; i < count; i += 1) {
        sum += codes[i * width + j];
        squares += codes[i * width + j] ** 2;
      }
      const mean = sum / count;
      return { mean, deviation: Math.sqrt(Math.max(squares / count - mean * mean, 0)) || 1 };
    });
  }

  // Squared distance of two values of one code: around the circle for an angle, else in deviations.
  function squaredDistance(a, b, fact, column) {
    if (fact.period === null) return ((a - b) / column.deviation) ** 2;
    return 2 - 2 * Math.cos(((a - b) * 2 * Math.PI) / fact.period);
  }

  class Model {
    constructor(payload) {
      Object.assign(this, payload);
      this.width = payload.facts.length;
      this.codeValues = toFloats(payload.codes);
      this.factorValues = payload.factors.map((factor) => toFloats(factor.values));
      this.statistics = codeStatistics(this.codeValues, this.count, payload.facts);
      this.tableValues = payload.kind === "table" ? toFloats(payload.values) : null;
      this.gridCodes = payload.grid ? toFloats(payload.grid.codes) : null;
      this.gridValues = payload.grid && payload.grid.values ? toFloats(payload.grid.values) : null;
      this.decoder = null;
      this.sheets = [];
      this.gridSheets = [];
    }

    async load(decoderLibrary, makeImage) {
      if (this.thumbnails) this.sheets = await Promise.all(this.thumbnails.sheets.map(makeImage));
      if (this.grid && this.grid.thumbnails) this.gridSheets = await Promise.all(this.grid.thumbnails.sheets.map(makeImage));
      if (this.decoderData) this.decoder = await decoderLibrary.load(this.decoderData);
    }

    get hasDecoder() {
      return this.decoder !== null;
    }

    get source() {
      if (this.hasDecoder) return "decoder";
      return this.grid ? "grid" : "observed";
    }

    // How many observations a random start is drawn from: a grid has the traversals of some only.
    get startCount() {
      return this.grid ? this.grid.starts : this.count;
    }

    codesOf(row) {
      return this.codeValues.subarray(row * this.width, (row + 1) * this.width);
    }

    // Return the row of `codes` (count, width) that is nearest to z.
    nearestRow(z, codes = this.codeValues, count = this.count) {
      let [best, least] = [0, Infinity];
      for (let i = 0; i < count; i += 1) {
        let sum = 0;
        for (let j = 0; j < this.width && sum < least; j += 1) {
          const value = codes[i * this.width + j];
          sum += squaredDistance(value, z[j], this.facts[j], this.statistics[j]);
        }
        if (sum < least) [best, least] = [i, sum];
      }
      return best;
    }

    // Return what to draw for codes z: {values} of a decoder, {point} of the grid, or {row} of an observation.
    observe(z) {
      if (this.hasDecoder) return { values: this.decoder.decode(z) };
      if (!this.grid) return this.observed(this.nearestRow(z));
      const point = this.nearestRow(z, this.gridCodes, this.grid.count);
      if (this.kind !== "table") return { point };
      const width = this.columns.length;
      return { point, values: this.gridValues.subarray(point * width, (point + 1) * width) };
    }

    // Return what to draw for an observation of the sample; large tables keep the values of some rows only.
    observed(row) {
      if (this.kind !== "table") return { row };
      const width = this.columns.length;
      const values = this.tableValues.subarray(row * width, (row + 1) * width);
      return values.length === width ? { row, values } : { row };
    }

    codeName(code) {
      return this.facts[code].period === null ? `code ${code + 1}` : `code ${code + 1} (angle)`;
    }

    factorText(factor, row) {
      const { names, kind } = this.factors[factor];
      const value = this.factorValues[factor][row];
      return names && kind !== "real" && names[value] !== undefined ? names[value] : UnweaveState.readable(value);
    }
  }

  return { Model, toFloats };
})();

if (typeof module !== "undefined") module.exports = UnweaveModel;
