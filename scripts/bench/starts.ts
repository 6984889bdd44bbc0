/** What a start of the server takes, with an empty store, until its first token. */
import { Line } from "./client.ts";
import { median } from "./rounds.ts";
import { prepare } from "./scenarios.ts";
import { makeFolder, NOT_KEPT, openStage, type Stage, type StageOptions } from "./stage.ts";

const STARTS = 5;

export type Start = {
  seconds: number;
  residentMegabytes: number;
  /** CPU time of all threads until the server listened, and until the first token. */
  listeningCpuMs: number;
  cpuMs: number;
};

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
  return {
    fresh: middleOf(starts.map(({ fresh }) => fresh)),
    compiled: middleOf(starts.map(({ compiled }) => compiled)),
  };
}

/** The median of each figure. */
export const middleOf = (starts: readonly Start[]): Start => ({
  seconds: median(starts.map((one) => one.seconds)),
  residentMegabytes: median(starts.map((one) => one.residentMegabytes)),
  listeningCpuMs: median(starts.map((one) => one.listeningCpuMs)),
  cpuMs: median(starts.map((one) => one.cpuMs)),
});

export const measureStart = async (options: StageOptions): Promise<Start> =>
  measureFirstToken(await openStage(options));

/** Of a server that was just started; ends it. */
export async function measureFirstToken(stage: Stage): Promise<Start> {
  try {
    const listening = await stage.usage();
    const call = await (await prepare(stage)).first();
    const line = new Line(stage.endpoint);
    const beganMs = performance.now();
    await line.send(call);
    const seconds = (stage.startMs + performance.now() - beganMs) / 1000;
    line.close();
    const { cpuMicros, residentBytes } = await stage.usage();
    return {
      seconds,
      residentMegabytes: residentBytes / 1e6,
      listeningCpuMs: listening.cpuMicros / 1e3,
      cpuMs: cpuMicros / 1e3,
    };
  } finally {
    await stage.close();
  }
}
