/** What the operator does, step by step, by the recipes of scripts/README.md, and what has to be true after it. */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { FILES_LOOK_MS } from "../../../src/limits.ts";
import { claimsOf } from "../../http-client.ts";
import { copyDatabase } from "./database.ts";
import { lookAt } from "./protocols.ts";
import type { Instance } from "./site.ts";
import { API, CLIENT, KEYS, SCOPE, USER } from "./site.ts";
import type { Stage } from "./stage.ts";
import { untilListens, within } from "./stage.ts";

/** What was found, in figures, and what is wrong of it. */
export type Found = { figures: string; wrong: readonly string[] };

export type Step = {
  name: string;
  /** Connections of the load may break; what they asked is asked elsewhere. */
  breaks?: true;
  run: () => Promise<Found>;
};

const STEADY_MS = 15_000;
/** Until the balancer has noticed a crash. */
const CRASHED_MS = 3_000;
/** The first start on a restored copy answers nothing for 360 s. */
const RESTORED_MS = 400_000;
const PROTOCOLS = "TLSv1.2 TLSv1.3";

/** What is false, in words. */
const claims = (facts: Readonly<Record<string, boolean>>): readonly string[] =>
  Object.keys(facts).filter((words) => facts[words] === false);

/** `mandate init` came before. */
export function stepsOf(stage: Stage, rotations: number): readonly Step[] {
  const { site } = stage;
  const [one, two] = site.instances as [Instance, Instance];
  let restored: Instance | undefined;
  let [snapshotMs, announcedMs, token] = [0, 0, ""];

  const serve = async (): Promise<Found> => {
    // The first start makes the tables.
    announcedMs = performance.now();
    await untilListens(stage.start(one));
    const consent = ["--issuer", site.provider, "--subject", USER, "--target", API, "--scope", SCOPE];
    await site.mandate(one, "consents", "add", ...consent, "--actor", `spiffe://localhost/agents/${CLIENT}`);
    const others = site.instances.slice(1);
    const checks = [];
    for (const other of others) checks.push(await site.tried(other, "check"));
    await Promise.all(others.map((other) => untilListens(stage.start(other))));
    await stage.startLoad();
    for (const instance of site.instances) await stage.balanced(instance);
    const wrong = checks.filter(({ code }) => code !== 0).map(({ out, err }) => out + err);
    return { figures: `${site.instances.length} instances`, wrong };
  };

  const steady = async (): Promise<Found> => {
    await sleep(STEADY_MS);
    return { figures: "", wrong: [] };
  };

  const backUp = async (): Promise<Found> => {
    const database = await site.freshDatabase();
    token = await stage.token(one);
    snapshotMs = Date.now();
    const rows = await copyDatabase(site.database, database);
    restored = await site.addInstance("restored", one.name, database);
    await site.mandate(restored, "backup", "mark-restored");
    return { figures: `${rows} rows`, wrong: [] };
  };

  const startRestored = async (at: Instance): Promise<Found> => {
    const server = stage.start(at);
    const says = () => server.says("store_restored") ?? "";
    await within(RESTORED_MS, "the start says that the store is a copy", async () => says() !== "");
    const waits = /For \d+ s no request is answered, until assertions [^.]*/.exec(says())?.[0];
    const answers = await stage.token(at).catch(() => undefined);
    const jti = String(claimsOf(token).jti);
    const [there, here] = await Promise.all(
      [one, at].map((each) => site.mandate(each, "tokens", "show", jti)),
    );
    const wrong = claims({
      "it says why it waits": waits !== undefined,
      "it waits": answers === undefined,
      "a token of before stands": there?.out.includes("It stands") === true,
      "on the copy it was ended": here?.out.includes("It was ended") === true,
    });
    return { figures: waits ?? "", wrong };
  };

  const renew = async (): Promise<Found> => {
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
  };

  const crash = async (): Promise<Found> => {
    await stage.server(two).end("SIGKILL");
    await sleep(CRASHED_MS);
    stage.start(two);
    await stage.balanced(two);
    return { figures: "", wrong: [] };
  };

  const restartAll = async (): Promise<Found> => {
    const wrong: string[] = [];
    for (const instance of site.instances) {
      const code = await stage.server(instance).end("SIGTERM");
      if (code !== 0) wrong.push(`${instance.name} ended with ${code}`);
      stage.start(instance);
      await stage.balanced(instance);
    }
    return { figures: `${site.instances.length} restarts`, wrong };
  };

  const rotate = async (): Promise<Found> => {
    await sleep(announcedMs + 1_000 * KEYS.announceSeconds - performance.now());
    announcedMs = performance.now();
    const { out } = await site.mandate(one, "keys", "rotate");
    // A verifier that fetched the keys just before has fetched them again.
    await sleep(1_000 * (KEYS.cacheSeconds + 2));
    return { figures: "", wrong: claims({ "the announced key signs": /signs/.test(out) }) };
  };

  const verified = async (): Promise<Found> => {
    const { verified: count, failed, kids, fetches } = await stage.stopLoad();
    const changed = claims({ "each rotation changed the key": kids.length === rotations + 1 });
    const figures = `${count} verifications by jose, ${kids.length} keys, ${fetches} fetches of /jwks`;
    return { figures, wrong: [...failed, ...changed] };
  };

  const restoredServes = async (at: Instance): Promise<Found> => {
    for (const instance of site.instances) await stage.server(instance).end("SIGTERM");
    await within(RESTORED_MS, "the server on the copy listens", async () => stage.server(at).listens());
    const anew = await stage.token(at);
    const { body } = await stage.post(at, "/introspect", { token: anew });
    const code = await stage.server(at).end("SIGTERM");
    return {
      figures: "",
      wrong: claims({ "a new token is active": body.active === true, "it ends with 0": code === 0 }),
    };
  };

  const audited = async (at: Instance, untilMs: number): Promise<Found> => {
    const verdict = await site.tried(at, "audit", "verify");
    const { out } = await site.mandate(at, "audit", "--json");
    const recorded = new Set([...out.matchAll(/"granted":\{[^}]*?"jti":"([^"]+)"/g)].map(([, jti]) => jti));
    const answered = readFileSync(site.jtiFile, "utf8").trimEnd().split("\n");
    const looked = answered.map((line) => line.split(" ")).filter(([, ms]) => Number(ms) < untilMs);
    const missing = looked.filter(([jti]) => !recorded.has(jti)).map(([jti]) => `${jti} is missing`);
    const bad = verdict.code === 0 ? [] : [verdict.err];
    return { figures: `${looked.length} tokens looked for by jti`, wrong: [...bad, ...missing] };
  };

  const onCopy = (run: (at: Instance) => Promise<Found>) => () => run(restored as Instance);
  return [
    { name: "check, serve", run: serve },
    { name: "steady load", run: steady },
    { name: "backup, restore, mark-restored", run: backUp },
    { name: "start on the restored copy", run: onCopy(startRestored) },
    { name: "certificate renewed", run: renew },
    { name: "one instance killed and started", breaks: true, run: crash },
    { name: "all restarted, one by one", run: restartAll },
    ...Array.from({ length: rotations }, () => ({ name: "keys rotate", run: rotate })),
    { name: "tokens verified offline", run: verified },
    { name: "trail of the instances", run: () => audited(one, Number.POSITIVE_INFINITY) },
    { name: "restored copy serves", run: onCopy(restoredServes) },
    { name: "trail of the restored copy", run: onCopy((at) => audited(at, snapshotMs)) },
  ];
}
