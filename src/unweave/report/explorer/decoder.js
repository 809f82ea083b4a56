"use strict";
// Runs the decoder of a method in a page or in node: `UnweaveDecoder.load(exported)` returns a promise of a decoder.
//
// `exported` is {operations, shape, latent_dim, weights}, written by decoder_export.py; weights are base64 of
// zlib-compressed integers of 16 bits. operations.py documents every operation. An operation takes one flat Float32Array and
// fills another one; images are (channels, height, width). `decoder.decode(z)` returns a new Float32Array with
// prod(shape) numbers. `decoder.decode(z, out)` fills `out` and allocates nothing.

const UnweaveDecoder = (() => {
  // Weights -------------------------------------------------------------------------------------------------------

  async function decompress(text) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new DataView(await new Response(stream).arrayBuffer());
  }

  function readWeights(view, entry, size) {
    if (entry === null || entry === undefined) return new Float32Array(size);
    if (Array.isArray(entry)) return checkSize(Float32Array.from(entry), size);
    const values = new Float32Array(entry.size);
    for (let i = 0; i < entry.size; i++) {
      let steps = view.getInt16(2 * (entry.at + i), true);
      if (entry.parts === 2) steps += view.getInt16(2 * (entry.at + entry.size + i), true) / 65536;
      values[i] = steps * entry.scale;
    }
    return checkSize(values, size);
  }

  function checkSize(values, size) {
    if (values.length !== size) throw new Error(`weights of size ${values.length}: expected ${size}`);
    return values;
  }

  // Products ------------------------------------------------------------------------------------------------------

  // out[n * outStep + places[p]] = bias[n] + sum_k weight[n, k] patches[p, k], four rows of weights and two patches
  // at a time, so that every number that is read is used several times.
  function multiply(weight, bias, patches, N, P, K, out, outStep, places) {
    let n = 0;
    for (; n + 4 <= N; n += 4) {
      const w0 = n * K, w1 = w0 + K, w2 = w1 + K, w3 = w2 + K;
      const o0 = n * outStep, o1 = o0 + outStep, o2 = o1 + outStep, o3 = o2 + outStep;
      let p = 0;
      for (; p + 2 <= P; p += 2) {
        const x0 = p * K, x1 = x0 + K;
        let a0 = bias[n], a1 = bias[n + 1], a2 = bias[n + 2], a3 = bias[n + 3];
        let b0 = a0, b1 = a1, b2 = a2, b3 = a3;
        for (let k = 0; k < K; k++) {
          const x = patches[x0 + k], y = patches[x1 + k];
          const u0 = weight[w0 + k], u1 = weight[w1 + k], u2 = weight[w2 + k], u3 = weight[w3 + k];
          a0 += u0 * x; a1 += u1 * x; a2 += u2 * x; a3 += u3 * x;
          b0 += u0 * y; b1 += u1 * y; b2 += u2 * y; b3 += u3 * y;
        }
        const q0 = places[p], q1 = places[p + 1];
        out[o0 + q0] = a0; out[o1 + q0] = a1; out[o2 + q0] = a2; out[o3 + q0] = a3;
        out[o0 + q1] = b0; out[o1 + q1] = b1; out[o2 + q1] = b2; out[o3 + q1] = b3;
      }
      for (; p < P; p++) {
        const x0 = p * K, q = places[p];
        let a0 = bias[n], a1 = bias[n + 1], a2 = bias[n + 2], a3 = bias[n + 3];
        for (let k = 0; k < K; k++) {
          const x = patches[x0 + k];
          a0 += weight[w0 + k] * x; a1 += weight[w1 + k] * x; a2 += weight[w2 + k] * x; a3 += weight[w3 + k] * x;
        }
        out[o0 + q] = a0; out[o1 + q] = a1; out[o2 + q] = a2; out[o3 + q] = a3;
      }
    }
    for (; n < N; n++) multiplyRow(weight, n * K, bias[n], patches, P, K, out, n * outStep, places);
  }

  function multiplyRow(weight, w, bias, patches, P, K, out, o, places) {
    let p = 0;
    for (; p + 4 <= P; p += 4) {
      const x0 = p * K, x1 = x0 + K, x2 = x1 + K, x3 = x2 + K;
      let a0 = bias, a1 = bias, a2 = bias, a3 = bias;
      for (let k = 0; k < K; k++) {
        const u = weight[w + k];
        a0 += u * patches[x0 + k]; a1 += u * patches[x1 + k]; a2 += u * patches[x2 + k]; a3 += u * patches[x3 + k];
      }
      out[o + places[p]] = a0; out[o + places[p + 1]] = a1; out[o + places[p + 2]] = a2; out[o + places[p + 3]] = a3;
    }
    for (; p < P; p++) {
      let a = bias;
      for (let k = 0; k < K; k++) a += weight[w + k] * patches[p * K + k];
      out[o + places[p]] = a;
    }
  }

  // Convolutions --------------------------------------------------------------------------------------------------

  // Along one axis, outputs o = step m + phase for m = 0, 1, ... get input `stride` m + shift times kernel place k for
  // each tap [k, shift]. A convolution has one phase. A transposed one has a phase for each place inside its stride.
  function axisPhases(transposed, kernel, stride, padding, outSide) {
    const phases = [];
    const step = transposed ? stride : 1;
    for (let phase = 0; phase < step && phase < outSide; phase++) {
      const taps = [];
      for (let k = 0; k < kernel; k++) {
        const shift = transposed ? (phase + padding - k) / stride : k - padding;
        if (Number.isInteger(shift)) taps.push([k, shift]);
      }
      phases.push({ phase, step, taps, stride: transposed ? 1 : stride, count: Math.ceil((outSide - phase) / step) });
    }
    return phases;
  }

  // For every pair of phases: which input every entry of the patches is (-1 for zero), and the weights in that order.
  function convPart(rows, columns, op, weight, transposed) {
    const [inChannels, height, width] = op.in, [outChannels, , outWidth] = op.out, [kh, kw] = op.kernel;
    const taps = rows.taps.flatMap((down) => columns.taps.map((right) => [...down, ...right]));
    const K = taps.length * inChannels, P = rows.count * columns.count;
    const sources = new Int32Array(P * taps.length), places = new Int32Array(P);
    for (let i = 0, p = 0; i < rows.count; i++) {
      for (let j = 0; j < columns.count; j++, p++) {
        places[p] = (rows.step * i + rows.phase) * outWidth + columns.step * j + columns.phase;
        taps.forEach(([, down, , right], t) => {
          const y = rows.stride * i + down, x = columns.stride * j + right;
          sources[p * taps.length + t] = y >= 0 && y < height && x >= 0 && x < width ? y * width + x : -1;
        });
      }
    }
    const matrix = new Float32Array(outChannels * K);
    for (let n = 0; n < outChannels; n++) {
      for (let c = 0; c < inChannels; c++) {
        taps.forEach(([ky, , kx], t) => {
          const pair = transposed ? c * outChannels + n : n * inChannels + c;
          matrix[n * K + t * inChannels + c] = weight[(pair * kh + ky) * kw + kx];
        });
      }
    }
    return { K, P, sources, places, matrix, taps: taps.length };
  }

  function convolution(op, view, transposed) {
    const [inChannels, height, width] = op.in, [outChannels, outHeight, outWidth] = op.out;
    const area = height * width, outArea = outHeight * outWidth;
    const weight = readWeights(view, op.weight, inChannels * outChannels * op.kernel[0] * op.kernel[1]);
    const bias = readWeights(view, op.bias, outChannels);
    const [rows, columns] = [0, 1].map((axis) =>
      axisPhases(transposed, op.kernel[axis], op.stride[axis], op.padding[axis], op.out[1 + axis]));
    const parts = rows.flatMap((row) => columns.map((column) => convPart(row, column, op, weight, transposed)));
    const patches = new Float32Array(Math.max(...parts.map((part) => part.K * part.P)));
    const pixels = new Float32Array(area * inChannels + inChannels); // channels last; the last pixel is zero
    const run = (input, out) => {
      for (let c = 0; c < inChannels; c++) {
        for (let i = 0, from = c * area; i < area; i++) pixels[i * inChannels + c] = input[from + i];
      }
      for (const part of parts) {
        const { sources, K, P } = part;
        for (let s = 0, to = 0; s < sources.length; s++) {
          const from = (sources[s] < 0 ? area : sources[s]) * inChannels;
          for (let c = 0; c < inChannels; c++) patches[to++] = pixels[from + c];
        }
        multiply(part.matrix, bias, patches, outChannels, P, K, out, outArea, part.places);
      }
    };
    return { run, inSize: inChannels * area, size: outChannels * outArea };
  }

  // Other operations ----------------------------------------------------------------------------------------------

  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  const FUNCTIONS = {
    relu: () => (x) => (x > 0 ? x : 0),
    leaky_relu: (op) => (x) => (x > 0 ? x : op.slope * x),
    elu: (op) => (x) => (x > 0 ? x : op.slope * Math.expm1(x)),
    silu: () => (x) => x * sigmoid(x),
    sigmoid: () => sigmoid,
    tanh: () => Math.tanh,
    log: () => Math.log,
    logit: () => (x) => Math.log(x / (1 - x)),
  };
  const CLAMPS = { soft: (s) => (4 / Math.PI) * Math.atan(s / 2), steep: (s) => 2 * Math.tanh(s) };

  function elementwise(op, size) {
    const f = FUNCTIONS[op.op](op);
    const run = (input, out) => {
      for (let i = 0; i < size; i++) out[i] = f(input[i]);
    };
    return { run, size };
  }

  function linear(op, view) {
    const weight = readWeights(view, op.weight, op.in * op.out), bias = readWeights(view, op.bias, op.out);
    const place = new Int32Array(1);
    return { run: (input, out) => multiply(weight, bias, input, op.out, 1, op.in, out, 1, place), inSize: op.in, size: op.out };
  }

  function affine(op, view, size) {
    const scale = readWeights(view, op.scale, op.channels), shift = readWeights(view, op.shift, op.channels);
    const area = size / op.channels;
    const run = (input, out) => {
      for (let c = 0, i = 0; c < op.channels; c++) {
        for (let j = 0; j < area; j++, i++) out[i] = input[i] * scale[c] + shift[c];
      }
    };
    return { run, size };
  }

  function place(op, view) {
    const values = readWeights(view, op.values, op.size), indices = Int32Array.from(op.indices);
    const run = (input, out) => {
      out.set(values);
      for (let i = 0; i < indices.length; i++) out[indices[i]] = input[i];
    };
    return { run, inSize: indices.length, size: op.size };
  }

  // Operations that only move numbers: out[i] = input[order[i]].
  function move(order, inSize) {
    const run = (input, out) => {
      for (let i = 0; i < order.length; i++) out[i] = input[order[i]];
    };
    return { run, inSize, size: order.length };
  }

  function permute(op, size) {
    const area = size / op.channels;
    return move(Int32Array.from({ length: size }, (_, i) => op.order[Math.floor(i / area)] * area + (i % area)), size);
  }

  function crop(op) {
    const [channels, height, width] = op.in, [, outHeight, outWidth] = op.out;
    const order = [];
    for (let c = 0; c < channels; c++) {
      for (let y = 0; y < outHeight; y++) for (let x = 0; x < outWidth; x++) order.push((c * height + y) * width + x);
    }
    return move(Int32Array.from(order), channels * height * width);
  }

  function pixelShuffle(op) {
    const [channels, height, width] = op.in, f = op.factor;
    const order = [];
    for (let c = 0; c < channels / (f * f); c++) {
      for (let y = 0; y < f * height; y++) {
        for (let x = 0; x < f * width; x++) {
          const source = c * f * f + (y % f) * f + (x % f);
          order.push((source * height + Math.floor(y / f)) * width + Math.floor(x / f));
        }
      }
    }
    return move(Int32Array.from(order), channels * height * width);
  }

  function uncouple(op, view) {
    const [channels, ...sides] = op.shape;
    const area = sides.reduce((a, b) => a * b, 1), size = channels * area, border = op.split * area;
    const first = op.half === "first";
    const [start, stop] = first ? [0, border] : [border, size];
    const fixed = new Float32Array(size - (stop - start));
    const network = compile(op.network, view, fixed.length);
    const half = stop - start, count = half / area, clamp = CLAMPS[op.clamp], scales = new Float32Array(half);
    const run = (input, out) => {
      out.set(input);
      const other = first ? border : 0;
      for (let i = 0; i < fixed.length; i++) fixed[i] = input[other + i];
      const result = network.run(fixed);
      for (let i = 0; i < half; i++) scales[i] = clamp(result[i]);
      if (op.volume !== "free") preserveVolume(scales, count, area, op.volume);
      for (let i = 0; i < half; i++) out[start + i] = (input[start + i] - result[half + i]) * Math.exp(-scales[i]);
    };
    return { run, inSize: size, size };
  }

  function preserveVolume(scales, count, area, volume) {
    const summed = volume === "last" ? count - 1 : count;
    for (let j = 0; j < area; j++) {
      let sum = 0;
      for (let c = 0; c < summed; c++) sum += scales[c * area + j];
      if (volume === "last") scales[summed * area + j] = -sum;
      else for (let c = 0; c < count; c++) scales[c * area + j] -= sum / count;
    }
  }

  // Programs ------------------------------------------------------------------------------------------------------

  const BUILDERS = {
    linear, affine, place, uncouple,
    conv: (op, view) => convolution(op, view, false),
    conv_transpose: (op, view) => convolution(op, view, true),
    permute: (op, view, size) => permute(op, size),
    crop, pixel_shuffle: pixelShuffle,
  };

  function buildStep(op, view, size) {
    if (op.op in FUNCTIONS) return elementwise(op, size);
    if (!(op.op in BUILDERS)) throw new Error(`unknown operation ${op.op}`);
    const step = BUILDERS[op.op](op, view, size);
    if (step.inSize !== undefined && step.inSize !== size) throw new Error(`${op.op}: ${size} inputs, expected ${step.inSize}`);
    return step;
  }

  // Return {run, size}: run(input) applies all operations and returns the output of the last one, which it keeps.
  function compile(operations, view, inSize) {
    let size = inSize;
    const steps = operations.map((op) => {
      const step = buildStep(op, view, size);
      size = step.size;
      return { run: step.run, out: new Float32Array(size) };
    });
    const run = (input) => {
      let values = input;
      for (let i = 0; i < steps.length; i++) {
        steps[i].run(values, steps[i].out);
        values = steps[i].out;
      }
      return values;
    };
    return { run, size };
  }

  async function load(exported) {
    const { operations, shape, latent_dim: codes, weights } = exported;
    const program = compile(operations, await decompress(weights), codes);
    const size = shape.reduce((a, b) => a * b, 1);
    if (program.size !== size) throw new Error(`a decoder of ${program.size} numbers: expected ${size}`);
    const input = new Float32Array(codes);
    return {
      shape,
      latentDim: codes,
      decode(z, out = new Float32Array(size)) {
        if (z.length !== codes) throw new Error(`${z.length} codes: expected ${codes}`);
        input.set(z);
        out.set(program.run(input));
        return out;
      },
    };
  }

  return { load };
})();

if (typeof module !== "undefined") module.exports = UnweaveDecoder;
