/**
 * The operator's rehearsal: three instances on one PostgreSQL, made by `mandate init` and started as it says, through all
 * that an operator does, under a steady load. A line for each step; it fails if a number that has to be zero is not.
 */
import assert from "node:assert/strict";
import type { LoadReport } from "./load.ts";
import type { Scene } from "./scene.ts";
import { openStage } from "./stage.ts";
import { stepsOf } from "./steps.ts";

const INSTANCES = 3;

const format = (step: string, failures: string, seconds: string, figures: string): string =>
  `${step.padEnd(32)} ${failures.padStart(8)} ${seconds.padStart(8)}  ${figures}`;

export async function* rehearse(rotations: number): AsyncGenerator<string, void> {
  yield format("step", "failures", "seconds", "figures");
  let total = 0;
  let startMs = performance.now();
  const row = (step: string, figures: string, wrong: readonly string[]): string => {
    const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
    startMs = performance.now();
    total += wrong.length;
    const because = [...new Set(wrong)].slice(0, 3).map((each) => `WRONG: ${each}`);
    return format(step, String(wrong.length), seconds, [figures, ...because].filter(Boolean).join("; "));
  };
  const stage = await openStage(INSTANCES);
  try {
    yield row("init", `${INSTANCES} folders`, []);
    const { site } = stage;
    const [one, two] = site.instances;
    assert.ok(one && two);
    const scene: Scene = { stage, site, one, two, announcedMs: 0, token: "", snapshotMs: 0 };
    for (const { name, breaks, run } of stepsOf(rotations)) {
      const { figures, wrong } = await run(scene);
      const load = await stage.report();
      const broken = load?.broken ?? [];
      const told = [describe(load), figures].filter(Boolean);
      if (breaks) told.push(`${broken.length} broken connections, asked again elsewhere`);
      yield row(name, told.join("; "), [...wrong, ...(load?.failed ?? []), ...(breaks ? [] : broken)]);
    }
  } finally {
    await stage.close();
  }
  assert.equal(total, 0, `${total} failures`);
}

function describe(load: LoadReport | undefined): string {
  if (load === undefined || load.answered === 0) return "";
  const { answered, unsent, seconds, p50Ms, p99Ms, cpuMs } = load;
  const times = `p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms`;
  const client = `${Math.round(cpuMs / seconds / 10)} % CPU of the client`;
  const behind = unsent === 0 ? "" : `, ${unsent} not sent because the servers were behind`;
  return `${answered} tokens, ${Math.round(answered / seconds)}/s, ${times}, ${client}${behind}`;
}
