/** What the operator does, step by step, by the recipes of scripts/deploy/README.md, and what has to be true after it. */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { FILES_LOOK_MS } from "../../../src/limits/process.ts";
import { audited, backUp, exported, restoredServes, startRestored } from "./backup.ts";
import { lookAt } from "./protocols.ts";
import { claims, type Found, type Scene } from "./scene.ts";
import { API, CLIENT, KEYS, SCOPE, USER } from "./site.ts";
import { type Usage, untilListens, within } from "./stage.ts";

export type Step = {
  name: string;
  /** Connections of the load may break; what they asked is asked elsewhere. */
  breaks?: true;
  run: (scene: Scene) => Promise<Found>;
};

/** After `mandate init`. */
export const stepsOf = (rotations: number): readonly Step[] => [
  { name: "check, serve", run: serve },
  { name: "steady load", run: steady },
  { name: "backup, restore, mark-restored", run: backUp },
  { name: "start on the restored copy", run: startRestored },
  { name: "certificate renewed", run: renew },
  { name: "one instance killed and started", breaks: true, run: crash },
  { name: "all restarted, one by one", run: restartAll },
  ...Array.from({ length: rotations }, () => ({ name: "keys rotate", run: rotate })),
  { name: "tokens verified offline", run: (scene) => verified(scene, rotations + 1) },
  { name: "export verified by witness", run: exported },
  { name: "trail of the instances", run: (scene) => audited(scene, scene.one, Number.POSITIVE_INFINITY) },
  { name: "restored copy serves", run: restoredServes },
  { name: "trail of the restored copy", run: (scene) => audited(scene, scene.restored, scene.snapshotMs) },
];

/** Until a new server has compiled what it runs. */
const WARM_MS = 5_000;
const STEADY_MS = 15_000;
/** Until the balancer has noticed a crash. */
const CRASHED_MS = 3_000;
const PROTOCOLS = "TLSv1.2 TLSv1.3";

async function serve(scene: Scene): Promise<Found> {
  const { stage, site, one } = scene;
  const checks = [await site.tried(one, "check")];
  // The first start makes the tables and the keys.
  scene.announcedMs = performance.now();
  await untilListens(stage.start(one));
  const consent = ["--issuer", site.provider, "--subject", USER, "--target", API, "--scope", SCOPE];
  await site.mandate(one, "consents", "add", ...consent, "--actor", `spiffe://localhost/agents/${CLIENT}`);
  const others = site.instances.slice(1);
  for (const other of others) checks.push(await site.tried(other, "check"));
  await Promise.all(others.map((other) => untilListens(stage.start(other))));
  await stage.startLoad();
  for (const instance of site.instances) await stage.balanced(instance);
  await sleep(WARM_MS);
  const wrong = checks.filter(({ code }) => code !== 0).map(({ out, err }) => out + err);
  return { figures: `${site.instances.length} instances`, wrong };
}

async function steady({ stage }: Scene): Promise<Found> {
  const before = await stage.usage();
  await sleep(STEADY_MS);
  const after = await stage.usage();
  return { figures: before && after ? describeUsage(before, after) : "", wrong: [] };
}

/** How busy each part was, in percent of one processor. */
function describeUsage(before: Usage, after: Usage): string {
  const parts = Object.keys(before) as (keyof Usage)[];
  const busy = parts.map(
    (part) => `${part} ${Math.round((100 * (after[part] - before[part])) / STEADY_MS)} %`,
  );
  return `CPU of ${availableParallelism()}: ${busy.join(", ")}`;
}

async function renew({ site }: Scene): Promise<Found> {
  const look = () => Promise.all(site.instances.map(({ port }) => lookAt(port, site.ca)));
  const before = await look();
  await site.renew();
  const old = new Set(before.map(({ fingerprint }) => fingerprint));
  await within(4 * FILES_LOOK_MS, "every instance shows the new certificate", async () =>
    (await look()).every(({ fingerprint }) => !old.has(fingerprint)),
  );
  const shown = [...before, ...(await look())].map(({ accepted }) => accepted.join(" "));
  const wrong = shown.filter((accepted) => accepted !== PROTOCOLS).map((accepted) => `accepts ${accepted}`);
  return { figures: `${PROTOCOLS} alone, before and after`, wrong };
}

async function crash({ stage, two }: Scene): Promise<Found> {
  await stage.server(two).end("SIGKILL");
  await sleep(CRASHED_MS);
  stage.start(two);
  await stage.balanced(two);
  return { figures: "", wrong: [] };
}

async function restartAll({ stage, site }: Scene): Promise<Found> {
  const wrong: string[] = [];
  for (const instance of site.instances) {
    const code = await stage.server(instance).end("SIGTERM");
    if (code !== 0) wrong.push(`${instance.name} ended with ${code}`);
    stage.start(instance);
    await stage.balanced(instance);
  }
  return { figures: `${site.instances.length} restarts`, wrong };
}

async function rotate(scene: Scene): Promise<Found> {
  const { site, one } = scene;
  await sleep(Math.max(0, scene.announcedMs + 1_000 * KEYS.announceSeconds - performance.now()));
  scene.announcedMs = performance.now();
  await site.mandate(one, "keys", "rotate");
  // A verifier that fetched the keys just before has fetched them again.
  await sleep(1_000 * (KEYS.cacheSeconds + 2));
  return { figures: "", wrong: [] };
}

async function verified({ stage }: Scene, keys: number): Promise<Found> {
  const { verified: count, failed, kids, fetches } = await stage.stopLoad();
  const changed = claims({ "each rotation changed the key": kids.length === keys });
  const figures = `${count} verifications by jose, ${kids.length} keys, ${fetches} fetches of /jwks`;
  return { figures, wrong: [...failed, ...changed] };
}
