/** The CPU time of processes, from /proc of Linux. */
import { readFileSync } from "node:fs";

const MS_BY_TICK = 10;

/** In milliseconds, with that of all below it, ended ones too; 0 for one that has ended. */
export function cpuMsOf(pid: number): number {
  let children: string[];
  let own: number;
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
    own =
      MS_BY_TICK *
      fieldsOf(pid)
        .slice(11, 15)
        .reduce((sum, ticks) => sum + Number(ticks), 0);
  } catch {
    return 0;
  }
  return children.reduce((sum, child) => sum + cpuMsOf(Number(child)), own);
}

export const parentOf = (pid: number): number => Number(fieldsOf(pid)[1]);

/** From the third one on; the second is a name that may have spaces. */
const fieldsOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
