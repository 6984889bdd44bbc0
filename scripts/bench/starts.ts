/** What a start of the server takes, with an empty store, until its first token. */
import { Line } from "./client.ts";
import { median } from "./rounds.ts";
import { prepare } from "./scenarios.ts";
import type { StageOptions } from "./stage.ts";
import { makeFolder, NOT_KEPT, openStage } from "./stage.ts";

const STARTS = 5;

export type Start = { seconds: number; residentMegabytes: number };

/** From the sources alone, and with the modules that an earlier start compiled. */
export type Starts = { fresh: Start; compiled: Start };

export async function measureStarts(rounds: number): Promise<Starts> {
  const { folder: compiled, remove } = makeFolder();
  const starts: Starts[] = [];
  try {
    await measureStart({ compiled });
    for (let times = 0; times < Math.min(rounds, STARTS); times++) {
      starts.push({
        fresh: await measureStart({ compiled: NOT_KEPT }),
        compiled: await measureStart({ compiled }),
      });
    }
  } finally {
    remove();
  }
  const middle = (how: keyof Starts): Start => ({
    seconds: median(starts.map((one) => one[how].seconds)),
    residentMegabytes: median(starts.map((one) => one[how].residentMegabytes)),
  });
  return { fresh: middle("fresh"), compiled: middle("compiled") };
}

async function measureStart(options: StageOptions): Promise<Start> {
  const stage = await openStage(options);
  try {
    const call = await (await prepare(stage)).first();
    const line = new Line(stage.endpoint);
    const beganMs = performance.now();
    await line.send(call);
    const seconds = (stage.startMs + performance.now() - beganMs) / 1000;
    line.close();
    return { seconds, residentMegabytes: (await stage.usage()).residentBytes / 1e6 };
  } finally {
    await stage.close();
  }
}
