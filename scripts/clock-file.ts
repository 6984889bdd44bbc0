/** Sets the clocks of servers whose environment names a clock file. */
import { renameSync, writeFileSync } from "node:fs";

/** By how much each clock is ahead of that of the system, in milliseconds. */
type Offsets = { wallMs: number; monotonicMs: number };

/** As one step, since a server may read the file at any moment, and ends if it is half written. */
export function setClock(file: string, offsets: Offsets): void {
  writeFileSync(`${file}.next`, JSON.stringify(offsets));
  renameSync(`${file}.next`, file);
}
