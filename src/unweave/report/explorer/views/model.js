"use strict";

// The data of the page, and what an observation with given codes looks like: decoded, or the nearest observed one.
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
      this.decoder = null;
      this.sheets = [];
    }

    async load(decoderLibrary, makeImage) {
      if (this.thumbnails) this.sheets = await Promise.all(this.thumbnails.sheets.map(makeImage));
      if (this.decoderData) this.decoder = await decoderLibrary.load(this.decoderData);
    }

    get hasDecoder() {
      return this.decoder !== null;
    }

    codesOf(row) {
      return this.codeValues.subarray(row * this.width, (row + 1) * this.width);
    }

    // Return the row whose codes are nearest to z.
    nearestRow(z) {
      let [best, least] = [0, Infinity];
      for (let i = 0; i < this.count; i += 1) {
        let sum = 0;
        for (let j = 0; j < this.width && sum < least; j += 1) {
          const value = this.codeValues[i * this.width + j];
          sum += squaredDistance(value, z[j], this.facts[j], this.statistics[j]);
        }
        if (sum < least) [best, least] = [i, sum];
      }
      return best;
    }

    // Return what to draw for codes z: {values} of a decoder, or {row} of an observation.
    observe(z) {
      return this.hasDecoder ? { values: this.decoder.decode(z) } : this.observed(this.nearestRow(z));
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
