/** The backup, the server on the restored copy, and the audit trails of both. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { claimsOf } from "../../http-client.ts";
import { copyDatabase } from "./database.ts";
import { exportTrail } from "./export.ts";
import { claims, type Found, type Scene } from "./scene.ts";
import type { Instance } from "./site.ts";
import { JTIS, within } from "./stage.ts";

/** The first start on a restored copy answers nothing for 360 s. */
const RESTORED_MS = 400_000;

export async function backUp(scene: Scene): Promise<Found> {
  const { stage, site, one } = scene;
  const database = await site.freshDatabase();
  scene.token = await stage.token(one);
  scene.snapshotMs = Date.now();
  const figures = await copyDatabase(site.database, database, site.fileAt("dump"));
  scene.restored = await site.addInstance("restored", one.name, database);
  await site.mandate(scene.restored, "backup", "mark-restored");
  return { figures, wrong: [] };
}

export async function startRestored(scene: Scene): Promise<Found> {
  const { stage, site, one, restored: at } = scene;
  assert.ok(at);
  const server = stage.start(at);
  const says = () => server.says("store_restored") ?? "";
  await within(RESTORED_MS, "the start says that the store is a copy", async () => says() !== "");
  const waits = /For \d+ s no request is answered, until assertions [^.]*/.exec(says())?.[0];
  const answers = await stage.token(at).catch(() => undefined);
  const jti = String(claimsOf(scene.token).jti);
  const [there, here] = await Promise.all([one, at].map((each) => site.mandate(each, "tokens", "show", jti)));
  const wrong = claims({
    "it says why it waits": waits !== undefined,
    "it waits": answers === undefined,
    "a token of before is valid": there?.out.includes("It is valid") === true,
    "on the copy it was ended": here?.out.includes("It was ended") === true,
  });
  return { figures: waits ?? "", wrong };
}

export async function restoredServes({ stage, site, restored: at }: Scene): Promise<Found> {
  assert.ok(at);
  for (const instance of site.instances) await stage.server(instance).end("SIGTERM");
  await within(RESTORED_MS, "the server on the copy listens", async () => stage.server(at).listens());
  const anew = await stage.token(at);
  const { body } = await stage.post(at, "/introspect", { token: anew });
  const code = await stage.server(at).end("SIGTERM");
  return {
    figures: "",
    wrong: claims({ "a new token is active": body.active === true, "it ends with 0": code === 0 }),
  };
}

export async function exported({ site, one }: Scene): Promise<Found> {
  const { code, out, err } = await site.offline(await exportTrail(site, one));
  return { figures: out.trim().split("\n").at(-1) ?? "", wrong: code === 0 ? [] : [err + out] };
}

/** `untilMs`: the tokens that were answered before are looked for. */
export async function audited({ site }: Scene, at: Instance | undefined, untilMs: number): Promise<Found> {
  assert.ok(at);
  const verdict = await site.tried(at, "audit", "verify");
  const { out } = await site.mandate(at, "audit", "--json");
  const recorded = new Set([...out.matchAll(/"granted":\{[^}]*?"jti":"([^"]+)"/g)].map(([, jti]) => jti));
  const answered = readFileSync(site.fileAt(JTIS), "utf8").trimEnd().split("\n");
  const asked = answered.map((line) => line.split(" ")).filter(([, ms]) => Number(ms) < untilMs);
  const missing = asked.filter(([jti]) => !recorded.has(jti)).map(([jti]) => `${jti} is missing`);
  const bad = [
    ...(verdict.code === 0 ? [] : [verdict.err]),
    ...claims({ "tokens were answered": asked.length > 0 }),
  ];
  return { figures: `${asked.length} tokens looked for by jti`, wrong: [...bad, ...missing] };
}
