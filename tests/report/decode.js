"use strict";
// node decode.js DECODER INPUT: decodes the codes of a JSON file and prints the results and the milliseconds of one.

const fs = require("node:fs");

async function main() {
  const [library, path] = process.argv.slice(2);
  const { exported, codes, repeats } = JSON.parse(fs.readFileSync(path, "utf8"));
  const decoder = await require(library).load(exported);
  const decoded = codes.map((z) => Array.from(decoder.decode(z)));
  const out = decoder.decode(codes[0]);
  const start = performance.now();
  for (let i = 0; i < repeats; i++) decoder.decode(codes[i % codes.length], out);
  const milliseconds = (performance.now() - start) / repeats;
  process.stdout.write(JSON.stringify({ decoded, milliseconds, node: process.version }));
}

main();
