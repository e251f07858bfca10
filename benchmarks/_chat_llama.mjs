// llama.cpp by way of node-llama-cpp: answers each line of stdin (a number of tokens) by one line of JSON.
// node benchmarks/_chat_llama.mjs FOLDER FILE.gguf THREADS PROMPT
import { readFileSync } from "node:fs";
import path from "node:path";
import readline from "node:readline";

const [folder, file, threads, prompt] = process.argv.slice(2);
const { getLlama } = await import(path.join(folder, "node_modules/node-llama-cpp/dist/index.js"));
const llama = await getLlama({ gpu: false, build: "never", maxThreads: Number(threads), logLevel: "error" });
const model = await llama.loadModel({ modelPath: file, gpuLayers: 0 });
const context = await model.createContext({ contextSize: 2048, threads: Number(threads) });
const sequence = context.getSequence();
const ids = model.tokenize(prompt, true);
const seconds = (used) => (used.user + used.system) / 1e6;
const peak = () => Number(readFileSync("/proc/self/status", "utf8").match(/VmHWM:\s+(\d+)/)[1]) / 1000;

async function write(count) {
  await sequence.clearHistory();
  const found = [];
  let cpu, wall;
  for await (const id of sequence.evaluate(ids, { temperature: 0, yieldEogToken: true })) {
    found.push(id);
    if (found.length === 1) [cpu, wall] = [process.cpuUsage(), performance.now()]; // the prompt has been read
    if (found.length === count + 1) break;
  }
  return {
    tokens: found.length - 1,
    cpu: seconds(process.cpuUsage(cpu)),
    wall: (performance.now() - wall) / 1e3,
    ids: found,
    prompt: ids.length,
    peak_megabytes: Math.round(peak()),
  };
}

console.log("ready");
for await (const line of readline.createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await write(Number(line))));
}
process.exit(0);
