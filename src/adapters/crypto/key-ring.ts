/**
 * The signing keys of this server, as the store has them: which of them signs. Each instance reads them every few seconds
 * and does what is due in their life; of several that do the same at the same time the store lets one. Keys are announced
 * for longer than it takes until every instance and every verifier knows them, so no instance waits for another.
 */
import type { AuditEvent } from "../../audit/event.ts";
import { KEY_USED_LAG_SECONDS } from "../../limits/keys.ts";
import type { Clock, Signer } from "../../ports.ts";
import { defined } from "../../result.ts";
import {
  dueSteps,
  type KeyFacts,
  type KeyPurpose,
  type KeyStep,
  type KeyUse,
} from "../../settings/key-life.ts";
import type { KeySchedule } from "../../settings/sections.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import type { KeyChange, KeyRow, Store } from "../store/store.ts";
import { type KeyCustody, KeysUnusable } from "./seal.ts";
import { makeSigner, type OpenedKey } from "./signer.ts";

type KeyRingOptions = {
  store: Pick<Store, "keys">;
  custody: KeyCustody;
  clock: Pick<Clock, "nowSeconds">;
  uses: () => readonly KeyUse[];
  schedule: () => KeySchedule;
  /** Writes an event with the changes of keys that it tells of; returns false if another instance was first. */
  record(entry: { event: AuditEvent; keys?: readonly KeyChange[] }): Promise<boolean>;
  /** Called once for a key that another process put into the store and that cannot be used here. */
  onUnusable(message: string): void;
};

export type KeyRing = {
  signer(purpose: KeyPurpose): Signer;
  /** Reads the keys again and does what is due; calls at the same time share one look. */
  renew(): Promise<void>;
  facts(): readonly KeyFacts[];
};

/** The steps of one look: a key is created, announced, and its successor as well. */
const ROUNDS_MAX = 4;

/** Throws KeysUnusable where a key in the store cannot be opened. */
export async function openKeyRing(options: KeyRingOptions): Promise<KeyRing> {
  const { store, custody, onUnusable } = options;
  let held: readonly OpenedKey[] = [];
  let started = false;
  const unusable = new Set<string>();
  let looking: Promise<void> | undefined;

  const open = async (row: KeyRow): Promise<OpenedKey | undefined> => {
    const known = held.find(({ facts: { kid } }) => kid === row.kid);
    if (known !== undefined) return { ...known, facts: row };
    try {
      const opened = await custody.open(row);
      // RFC7517-7-1, RFC8414-2-6: only public members are published, and each key has its `use`.
      return { facts: row, ...opened, published: { ...opened.publicJwk, use: "sig" } as JsonObject };
    } catch (fault) {
      // The keys that are held are used on, while a start would serve without keys that verifiers know.
      if (!started || !(fault instanceof KeysUnusable)) throw fault;
      if (!unusable.has(row.kid)) onUnusable(fault.message);
      unusable.add(row.kid);
      return undefined;
    }
  };
  const hold = async (rows: readonly KeyRow[]): Promise<void> => {
    const opened: OpenedKey[] = [];
    for (const row of rows) {
      const key = await open(row);
      if (key !== undefined) opened.push(key);
    }
    held = opened;
  };
  const look = async (): Promise<void> => {
    await hold(await keepKeys(options));
    started = true;
  };
  const renew = (): Promise<void> => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  // Keys are checked before anything is made, so that nothing is added with a wrong key-encryption key.
  await hold(await store.keys.list());
  await renew();
  return {
    renew,
    facts: () => held.map(({ facts }) => facts),
    signer: (purpose) => makeSigner(() => held.filter(({ facts }) => facts.purpose === purpose), renew),
  };
}

export type KeeperOptions = Pick<
  KeyRingOptions,
  "store" | "custody" | "clock" | "uses" | "schedule" | "record"
>;

/** Does what is due, and returns the keys afterwards. */
export async function keepKeys(options: KeeperOptions): Promise<readonly KeyRow[]> {
  const { store, clock, uses, schedule } = options;
  const nowSeconds = clock.nowSeconds();
  let rows = await store.keys.list();
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const steps = dueSteps(rows, uses(), schedule(), nowSeconds);
    if (steps.length === 0) break;
    for (const step of steps) await take(step, options, nowSeconds);
    rows = await store.keys.list();
  }
  const stale = rows.filter(
    ({ state, purpose, alg, usedAtSeconds = 0 }) =>
      state !== "retired" &&
      usedAtSeconds <= nowSeconds - KEY_USED_LAG_SECONDS &&
      uses().some((use) => use.purpose === purpose && use.alg === alg),
  );
  if (stale.length > 0)
    await store.keys.markUsed(
      stale.map(({ kid }) => kid),
      nowSeconds,
    );
  return rows;
}

async function take(
  step: KeyStep,
  { store, custody, record }: KeeperOptions,
  nowSeconds: number,
): Promise<void> {
  if (step.do === "create") {
    const { use, state } = step;
    const made: KeyRow = {
      ...use,
      ...(await custody.make(use.alg)),
      state,
      createdAtSeconds: nowSeconds,
      usedAtSeconds: nowSeconds,
    };
    // The write has no effect where another instance was first.
    if (!(await store.keys.insertIfNone(made))) return;
    const reason = state === "active" ? "none_before" : "key_announced";
    await record({ event: keyEvent("key.created", reason, made) });
    return;
  }
  const { key } = step;
  switch (step.do) {
    case "activate":
      // A key that another process made with another key-encryption key would sign nowhere.
      if (!(await canOpen(key.kid, { store, custody }))) return;
      await record({
        event: keyEvent("key.rotated", step.reason, key, { retires: step.retires?.kid }),
        keys: swapKeys(key, step.retires, nowSeconds),
      });
      return;
    case "retire":
      await record({
        event: keyEvent("key.retired", "key_unused", key),
        keys: [{ kid: key.kid, from: key.state, to: "retired", sinceSeconds: nowSeconds }],
      });
      return;
    case "remove":
      await record({
        event: keyEvent("key.removed", step.reason, key),
        keys: [{ kid: key.kid, from: key.state, to: "removed" }],
      });
  }
}

async function canOpen(
  kid: string,
  { store, custody }: Pick<KeeperOptions, "store" | "custody">,
): Promise<boolean> {
  const row = (await store.keys.list()).find((one) => one.kid === kid);
  return (
    row !== undefined &&
    custody.open(row).then(
      () => true,
      (fault) => {
        if (fault instanceof KeysUnusable) return false;
        throw fault;
      },
    )
  );
}

/** Makes one key active and retires the one before it. */
const swapKeys = (
  { kid }: Pick<KeyFacts, "kid">,
  retires: Pick<KeyFacts, "kid"> | undefined,
  sinceSeconds: number,
): readonly KeyChange[] => [
  ...(retires === undefined
    ? []
    : [{ kid: retires.kid, from: "active", to: "retired", sinceSeconds } as const]),
  { kid, from: "announced", to: "active", sinceSeconds },
];

export const keyEvent = (
  type: AuditEvent["type"],
  reason: AuditEvent["reason"],
  { kid, alg, purpose }: Pick<KeyFacts, "kid" | "alg" | "purpose">,
  detail: { readonly [name: string]: string | undefined } = {},
): AuditEvent => ({
  type,
  outcome: "allow",
  reason,
  detail: defined<JsonObject>({ kid, alg, purpose, ...detail }),
});
