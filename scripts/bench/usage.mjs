/**
 * Preloaded into a measured server: answers every message with the CPU time of all threads and what was allocated on the
 * heap since the start, the resident memory, and how late the event loop was since the last answer: 99 of 100 delays are shorter, the longest, and
 * the most processor time between two looks, in which the disk and other processes do not count.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";

const RESOLUTION_MS = 5;
const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
delays.enable();
let before = process.threadCpuUsage();
let busiestMicros = 0;
setInterval(() => {
  const now = process.threadCpuUsage();
  busiestMicros = Math.max(busiestMicros, now.user + now.system - before.user - before.system);
  before = now;
}, RESOLUTION_MS).unref();

process.on("message", () => {
  const { user, system } = process.cpuUsage();
  const loopDelayMs = Math.max(0, delays.percentile(99) / 1e6 - RESOLUTION_MS);
  const stallMs = Math.max(0, delays.max / 1e6 - RESOLUTION_MS);
  const stallCpuMs = Math.max(0, busiestMicros / 1e3 - RESOLUTION_MS);
  busiestMicros = 0;
  delays.reset();
  process.send?.({
    cpuMicros: user + system,
    residentBytes: process.memoryUsage.rss(),
    allocatedBytes: getHeapStatistics().total_allocated_bytes,
    loopDelayMs,
    stallMs,
    stallCpuMs,
  });
});
// Without its parent process the server would run on.
process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
