"use strict";

// Animated GIF (version 89a) of frames {width, height, data} with RGBA bytes. Colors: at most 256 for all frames.
const UnweaveGif = (() => {
  const MAX_COLORS = 256;
  const MAX_CODE = 4096; // of the compression, after which its table starts again

  const colorKey = (data, i) => (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
  const channel = (color, c) => (color >> (16 - 8 * c)) & 255;

  function countColors(frames) {
    const counts = new Map();
    for (const { data } of frames) {
      for (let i = 0; i < data.length; i += 4) {
        const key = colorKey(data, i);
        counts.set(key, (counts.get(key) || 0) + 1);
      }
    }
    return counts;
  }

  // Return the channel with the widest range in a box of colors, and that range.
  function widestChannel(box) {
    let best = { c: 0, range: -1 };
    for (let c = 0; c < 3; c += 1) {
      let [low, high] = [255, 0];
      for (const [color] of box) {
        low = Math.min(low, channel(color, c));
        high = Math.max(high, channel(color, c));
      }
      if (high - low > best.range) best = { c, range: high - low };
    }
    return best;
  }

  // Median cut: halve the box with the widest range until there are enough boxes; return {palette, indexOf}.
  function makePalette(counts) {
    let boxes = [[...counts]];
    while (boxes.length < Math.min(MAX_COLORS, counts.size)) {
      const widest = boxes.map(widestChannel);
      const place = widest.reduce((best, { range }, i) => (range > widest[best].range ? i : best), 0);
      const { c } = widest[place];
      const box = boxes[place].sort((a, b) => channel(a[0], c) - channel(b[0], c));
      const total = box.reduce((sum, [, count]) => sum + count, 0);
      let [cut, sum] = [0, 0];
      while (cut < box.length - 1 && (cut === 0 || sum + box[cut][1] <= total / 2)) sum += box[cut++][1];
      boxes = [...boxes.slice(0, place), box.slice(0, cut), box.slice(cut), ...boxes.slice(place + 1)];
    }
    const indexOf = new Map();
    const palette = boxes.map((box, i) => {
      const total = box.reduce((sum, [, count]) => sum + count, 0);
      for (const [color] of box) indexOf.set(color, i);
      return [0, 1, 2].map((c) => Math.round(box.reduce((sum, [color, count]) => sum + channel(color, c) * count, 0) / total));
    });
    return { palette, indexOf };
  }

  // Write codes of a growing number of bits, lowest bit first, in blocks of at most 255 bytes.
  class BitWriter {
    constructor(out) {
      this.out = out;
      this.block = [];
      this.bits = 0;
      this.count = 0;
    }

    write(code, size) {
      this.bits |= code << this.count;
      this.count += size;
      while (this.count >= 8) {
        this.push(this.bits & 255);
        this.bits >>>= 8;
        this.count -= 8;
      }
    }

    push(byte) {
      this.block.push(byte);
      if (this.block.length === 255) this.flush();
    }

    flush() {
      if (this.block.length) this.out.push(this.block.length, ...this.block);
      this.block = [];
    }

    end() {
      if (this.count) this.push(this.bits & 255);
      this.flush();
      this.out.push(0);
    }
  }

  // Compress indices of colors by LZW as the format asks for.
  function compress(indices, depth, out) {
    const [clear, stop] = [1 << depth, (1 << depth) + 1];
    const writer = new BitWriter(out);
    let [table, next, size] = [new Map(), stop + 1, depth + 1];
    out.push(depth);
    writer.write(clear, size);
    let prefix = indices[0];
    for (let i = 1; i < indices.length; i += 1) {
      const key = (prefix << 8) | indices[i];
      if (table.has(key)) {
        prefix = table.get(key);
        continue;
      }
      writer.write(prefix, size);
      if (next < MAX_CODE) {
        table.set(key, next);
        if (next === 1 << size) size += 1;
        next += 1;
      } else {
        writer.write(clear, size);
        [table, next, size] = [new Map(), stop + 1, depth + 1];
      }
      prefix = indices[i];
    }
    writer.write(prefix, size);
    writer.write(stop, size);
    writer.end();
  }

  const short = (value) => [value & 255, value >> 8];

  // Return the bytes of the file; delay in hundredths of a second. It repeats forever.
  function encode(frames, delay) {
    const { width, height } = frames[0];
    const { palette, indexOf } = makePalette(countColors(frames));
    const depth = Math.max(2, Math.ceil(Math.log2(palette.length)));
    const out = [...new TextEncoder().encode("GIF89a"), ...short(width), ...short(height), 0xf0 | (depth - 1), 0, 0];
    for (let i = 0; i < 1 << depth; i += 1) out.push(...(palette[i] || [0, 0, 0]));
    out.push(0x21, 0xff, 11, ...new TextEncoder().encode("NETSCAPE2.0"), 3, 1, 0, 0, 0);
    for (const { data } of frames) {
      const indices = new Uint8Array(width * height);
      for (let i = 0; i < indices.length; i += 1) indices[i] = indexOf.get(colorKey(data, 4 * i));
      out.push(0x21, 0xf9, 4, 0, ...short(delay), 0, 0);
      out.push(0x2c, 0, 0, 0, 0, ...short(width), ...short(height), 0);
      compress(indices, depth, out);
    }
    out.push(0x3b);
    return Uint8Array.from(out);
  }

  return { encode };
})();

if (typeof module !== "undefined") module.exports = UnweaveGif;
