/** How this process does: its use of the machine, and how late its event loop is. */
import { monitorEventLoopDelay } from "node:perf_hooks";

const NS_PER_SECOND = 1e9;
const US_PER_SECOND = 1e6;
/** How often the event loop is asked. */
const LOOP_RESOLUTION_MS = 20;

/** Why nothing can be listened on or connected to, under Node's permission model. */
export const NO_NET = "Node was started without --allow-net: add that flag";
export const mayUseNet = (): boolean => process.permission?.has("net") ?? true;

type ProcessState = {
  cpuSeconds: number;
  residentBytes: number;
  /** The time is a Unix time. */
  startSeconds: number;
  /**
   * By how many seconds timers were late since the last reading: half of them by no more than p50, 99 of 100 by no more
   * than p99, and all by no more than max; empty if no timer was due.
   */
  loopDelaySeconds: readonly { rank: string; seconds: number }[];
};

/** Each reading begins the period of the next one. */
export function watchProcess(): { read(): ProcessState; close(): void } {
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  const startSeconds = Math.round((performance.timeOrigin / 1000) * 1000) / 1000;
  // The monitor counts the time from one look to the next; the pause between them is no delay.
  const late = (ns: number): number => Math.max(0, ns / NS_PER_SECOND - LOOP_RESOLUTION_MS / 1000);
  return {
    read() {
      const loopDelaySeconds =
        loop.count === 0
          ? []
          : [
              { rank: "p50", seconds: late(loop.percentile(50)) },
              { rank: "p99", seconds: late(loop.percentile(99)) },
              { rank: "max", seconds: late(loop.max) },
            ];
      loop.reset();
      const { user, system } = process.cpuUsage();
      return {
        cpuSeconds: (user + system) / US_PER_SECOND,
        residentBytes: process.memoryUsage.rss(),
        startSeconds,
        loopDelaySeconds,
      };
    },
    close() {
      loop.disable();
    },
  };
}

/** How many files and connections the system lets this process open. */
export function openFilesMax(): number {
  // The report leaves out its connections, whose names it would look up.
  const report = Object.assign(process.report, { excludeNetwork: true }).getReport();
  const { soft } = Object(Object(report).userLimits?.open_files);
  return typeof soft === "number" ? soft : Number.POSITIVE_INFINITY;
}
