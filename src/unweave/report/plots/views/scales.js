"use strict";

// Numbers: unpacking, scales, ticks, texts and colors.
const UnweaveScales = (() => {
  const LEVELS = 65535; // steps of a packed column
  const LIGHTEN = 0.35; // share of white in colors on a dark page, on which dark points could not be seen
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // Return the numbers of a column that was packed as 16-bit steps between its lowest and highest value.
  function unpack({ low, high, data }) {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const steps = new DataView(bytes.buffer);
    return Float64Array.from({ length: bytes.length / 2 }, (_, i) => low + ((high - low) * steps.getUint16(2 * i, true)) / LEVELS);
  }

  // Return a function from values to places; limits of equal values are widened.
  function makeScale([low, high], [start, end], isLog = false) {
    const read = isLog ? Math.log : (value) => value;
    const [a, b] = low === high ? [read(low) - 0.5, read(high) + 0.5] : [read(low), read(high)];
    return (value) => start + ((end - start) * (read(value) - a)) / (b - a);
  }

  // Return the lowest and highest number with a margin, without those that are missing.
  function limitsOf(values, margin = 0.04) {
    const known = values.filter((value) => value !== null && Number.isFinite(value));
    if (!known.length) return [0, 1];
    const low = known.reduce((a, b) => Math.min(a, b)), high = known.reduce((a, b) => Math.max(a, b));
    const room = margin * (high - low || Math.abs(high) || 1);
    return [low - room, high + room];
  }

  // Return round numbers between two limits.
  function roundTicks([low, high], count = 5) {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    const write = (value) => (Math.abs(value) >= 1e5 ? value.toExponential(0) : value.toFixed(Math.min(digits, 9)));
    return Array.from({ length: last - first + 1 }, (_, i) => [(first + i) * step, write((first + i) * step)]);
  }

  // Return a number with at most four significant digits.
  function readable(value) {
    if (value === null || value === undefined) return "\u2013";
    if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
    return String(Number(value.toPrecision(4)));
  }

  // Return a color [r, g, b] as CSS, lighter on a dark page.
  function shade(rgb) {
    const parts = dark.matches ? rgb.map((part) => Math.round(part + (255 - part) * LIGHTEN)) : rgb.map(Math.round);
    return `rgb(${parts.join(",")})`;
  }

  function parseColor(text) {
    return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
  }

  // Return a function from a value of a factor to its color.
  function factorColor({ names, colors, stops, limits }) {
    if (names) return (value) => shade(parseColor(colors[Math.round(value)]));
    const parsed = stops.map(parseColor), place = makeScale(limits, [0, stops.length - 1]);
    return (value) => {
      const at = Math.min(Math.max(place(value), 0), stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
      return shade(parsed[i].map((part, c) => part + (parsed[i + 1][c] - part) * (at - i)));
    };
  }

  return { unpack, makeScale, limitsOf, roundTicks, readable, factorColor, dark };
})();
