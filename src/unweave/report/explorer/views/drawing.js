"use strict";

// Pictures of observations and colors of values.
const UnweaveDrawing = (() => {
  const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]; // dark to light
  const CLASSES = ["#0b6bcb", "#e07b00", "#2e9e5b", "#c2348b", "#7d5fd3", "#8a6d3b", "#d1403a", "#5b7f95", "#9aa51d", "#00a3a3"];
  const MIN_CELL = 56; // pixels of a picture; smaller ones are enlarged by whole factors

  function rampColor(share) {
    const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
    const i = Math.min(Math.floor(place), RAMP.length - 2);
    const mixed = RAMP[i].map((value, c) => Math.round(value + (RAMP[i + 1][c] - value) * (place - i)));
    return `rgb(${mixed.join(",")})`;
  }

  // Color of a value in deviations from the mean: blue below, white at, red above.
  function divergingColor(deviations) {
    const share = Math.min(Math.abs(deviations) / 2, 1);
    const end = deviations < 0 ? [20, 95, 180] : [190, 40, 35];
    return end.map((value) => Math.round(245 + (value - 245) * share));
  }

  // Return a function row -> color for a factor, and what its legend shows.
  function factorScale(model, factor) {
    if (factor < 0) return { color: () => CLASSES[0], entries: [] };
    const { kind, names, period, name } = model.factors[factor];
    const values = model.factorValues[factor];
    const levels = [...new Set(values)].sort((a, b) => a - b);
    if (kind === "nominal" || (names && levels.length <= CLASSES.length)) {
      const place = new Map(levels.map((level, i) => [level, CLASSES[i % CLASSES.length]]));
      const entries = levels.slice(0, CLASSES.length).map((level) => {
        const text = names && names[level] !== undefined ? names[level] : UnweaveState.readable(level);
        return { color: place.get(level), text };
      });
      return { color: (row) => place.get(values[row]), entries, name };
    }
    const [low, high] = [levels[0], levels[levels.length - 1]];
    if (kind === "circular") {
      const hue = (value) => `hsl(${Math.round((360 * value) / period)} 70% 50%)`;
      return { color: (row) => hue(values[row]), ramp: (share) => hue(share * period), ends: [0, period], name };
    }
    const shareOf = (row) => Math.round((63 * (values[row] - low)) / (high - low || 1)) / 63;
    return { color: (row) => rampColor(shareOf(row)), ramp: rampColor, ends: [low, high], name };
  }

  class Painter {
    constructor(model) {
      this.model = model;
      const isImage = model.kind === "image";
      const shape = model.shape.length === 2 ? [1, ...model.shape] : model.shape;
      this.size = isImage ? { width: shape[2], height: shape[1] } : { width: 1, height: Math.min(model.columns.length, 64) };
      this.channels = isImage ? shape[0] : 1;
      this.buffer = document.createElement("canvas");
      this.buffer.width = this.size.width;
      this.buffer.height = this.size.height;
      this.pen = this.buffer.getContext("2d");
      this.image = this.pen.createImageData(this.size.width, this.size.height);
      const factor = Math.max(1, Math.ceil(MIN_CELL / Math.max(this.size.width, this.size.height)));
      this.cell = isImage
        ? { width: this.size.width * factor, height: this.size.height * factor }
        : { width: MIN_CELL, height: Math.max(24, Math.min(4 * this.size.height, 96)) };
    }

    // Draw an observation, {values}, {point} or {row}, into a rectangle of a canvas.
    paint(context, observation, box) {
      context.imageSmoothingEnabled = false;
      if (observation.values) {
        this.fill(observation.values);
        context.drawImage(this.buffer, box.x, box.y, box.width, box.height);
      } else if (observation.point !== undefined) {
        this.paintTile(context, this.model.gridSheets, this.model.grid.thumbnails, observation.point, box);
      } else if (this.model.sheets.length) {
        this.paintTile(context, this.model.sheets, this.model.thumbnails, observation.row, box);
      }
    }

    paintTile(context, sheets, { width, height, columns, perSheet }, number, box) {
      const place = number % perSheet;
      const source = [(place % columns) * width, Math.floor(place / columns) * height, width, height];
      context.imageSmoothingEnabled = width > box.width;
      context.drawImage(sheets[Math.floor(number / perSheet)], ...source, box.x, box.y, box.width, box.height);
    }

    fill(values) {
      if (this.model.kind === "table") this.fillColumns(values);
      else this.fillPixels(values);
      this.pen.putImageData(this.image, 0, 0);
    }

    fillPixels(values) {
      const [low, high] = this.model.levels;
      const area = this.size.width * this.size.height;
      const used = this.channels >= 3 ? [0, 1, 2] : [0, 0, 0];
      for (let i = 0; i < area; i += 1) {
        for (let c = 0; c < 3; c += 1) {
          this.image.data[4 * i + c] = Math.round((255 * (values[used[c] * area + i] - low)) / (high - low));
        }
        this.image.data[4 * i + 3] = 255;
      }
    }

    fillColumns(values) {
      for (let i = 0; i < this.size.height; i += 1) {
        const color = divergingColor((values[i] - this.model.means[i]) / this.model.deviations[i]);
        this.image.data.set([...color, 255], 4 * i);
      }
    }

    // Draw b - a of two decoded images: red where b is higher, blue where it is lower, transparent where both are equal.
    paintDifference(context, a, b, box) {
      const [low, high] = this.model.levels;
      const area = this.size.width * this.size.height;
      for (let i = 0; i < area; i += 1) {
        let sum = 0;
        for (let c = 0; c < this.channels; c += 1) sum += b[c * area + i] - a[c * area + i];
        const change = (4 * sum) / this.channels / (high - low);
        this.image.data.set([...divergingColor(Math.sign(change)), Math.round(255 * Math.min(Math.abs(change), 1))], 4 * i);
      }
      this.pen.putImageData(this.image, 0, 0);
      context.imageSmoothingEnabled = false;
      context.clearRect(box.x, box.y, box.width, box.height);
      context.drawImage(this.buffer, box.x, box.y, box.width, box.height);
    }
  }

  return { Painter, factorScale, rampColor, divergingColor };
})();

if (typeof module !== "undefined") module.exports = UnweaveDrawing;
