/**
 * The life of a signing key: announced (published, so that verifiers know it before it signs) → active → retired
 * (verifies what it signed) → removed. For each purpose and algorithm in use one key is active and one announced, which
 * can take its place at once when a key has to be withdrawn.
 */
import { CHECKPOINT_ALGORITHM } from "../audit/checkpoint.ts";
import { KEY_UNUSED_SECONDS } from "../limits/keys.ts";
import { issuedTo } from "../policy/products.ts";
import type { PolicySet } from "../policy/rules.ts";
import type { KeySchedule } from "./sections.ts";

export type KeyState = "announced" | "active" | "retired";

/** A key signs access tokens, audit checkpoints, grants for other servers or security events, never two of them. */
export type KeyPurpose = "token" | "checkpoint" | "grant" | "signal";

/** What is known of a key beside the key itself. */
export type KeyFacts = {
  kid: string;
  alg: string;
  purpose: KeyPurpose;
  state: KeyState;
  createdAtSeconds: number;
  /** When the key came into its state; absent: when it was created. */
  sinceSeconds?: number;
  /** From when on the operator wants another key to sign in its place. */
  replaceAtSeconds?: number;
  /** When an instance last had the key's purpose and algorithm in use. */
  usedAtSeconds?: number;
};

type UsingKeys = {
  policy: Pick<PolicySet, "targets">;
  streams: ReadonlyMap<string, { alg: string }>;
};

export type KeyUse = Pick<KeyFacts, "purpose" | "alg">;

/** The purposes and algorithms that our targets, our partners, our receivers and the audit trail need. */
export function keysInUse({ policy: { targets }, streams }: UsingKeys): readonly KeyUse[] {
  const uses = new Map<string, KeyUse>();
  const add = (use: KeyUse): void => void uses.set(`${use.purpose} ${use.alg}`, use);
  add({ purpose: "checkpoint", alg: CHECKPOINT_ALGORITHM });
  // TXN-D-12: the keys of access tokens sign no transaction token.
  for (const target of targets.values())
    add({ purpose: issuedTo(target) === "access_token" ? "token" : "grant", alg: target.alg });
  for (const { alg } of streams.values()) add({ purpose: "signal", alg });
  return [...uses.values()];
}

const isOf =
  ({ purpose, alg }: KeyUse, state?: KeyState) =>
  (key: KeyFacts): boolean =>
    key.purpose === purpose && key.alg === alg && (state === undefined || key.state === state);

const sinceOf = ({ sinceSeconds, createdAtSeconds }: KeyFacts): number => sinceSeconds ?? createdAtSeconds;

export type KeyStep =
  | { do: "create"; use: KeyUse; state: "active" | "announced" }
  | { do: "activate"; key: KeyFacts; retires?: KeyFacts; reason: "key_due" | "by_operator" | "none_before" }
  | { do: "retire"; key: KeyFacts }
  | { do: "remove"; key: KeyFacts; reason: "key_unused" | "key_over" };

/** What is due now. A key that is created may make more due. */
export function dueSteps(
  keys: readonly KeyFacts[],
  uses: readonly KeyUse[],
  schedule: KeySchedule,
  nowSeconds: number,
): readonly KeyStep[] {
  const unused = keys.filter((key) => !uses.some((use) => isOf(use)(key)));
  return [
    ...uses.flatMap((use) => stepsOf(use, keys, schedule, nowSeconds)),
    ...unused.flatMap((key) => stepsOfUnused(key, nowSeconds)),
    ...keys
      .filter(
        (key) => key.state === "retired" && (nextChange(key, keys, schedule) ?? nowSeconds + 1) <= nowSeconds,
      )
      .map((key): KeyStep => ({ do: "remove", key, reason: "key_over" })),
  ];
}

function stepsOf(
  use: KeyUse,
  keys: readonly KeyFacts[],
  schedule: KeySchedule,
  nowSeconds: number,
): readonly KeyStep[] {
  const active = keys.find(isOf(use, "active"));
  const next = keys.find(isOf(use, "announced"));
  if (active === undefined && next === undefined) return [{ do: "create", use, state: "active" }];
  if (active === undefined && next !== undefined)
    return [{ do: "activate", key: next, reason: "none_before" }];
  if (active === undefined || next === undefined) return [{ do: "create", use, state: "announced" }];
  if ((nextChange(next, keys, schedule) ?? nowSeconds + 1) > nowSeconds) return [];
  const ordered = active.replaceAtSeconds !== undefined && active.replaceAtSeconds <= nowSeconds;
  return [{ do: "activate", key: next, retires: active, reason: ordered ? "by_operator" : "key_due" }];
}

/** Instances take a changed configuration at different times, so a key is not given up at once. */
function stepsOfUnused(key: KeyFacts, nowSeconds: number): readonly KeyStep[] {
  const unusedSince = key.usedAtSeconds ?? key.createdAtSeconds;
  if (nowSeconds < unusedSince + KEY_UNUSED_SECONDS) return [];
  if (key.state === "announced") return [{ do: "remove", key, reason: "key_unused" }];
  return key.state === "active" ? [{ do: "retire", key }] : [];
}

/**
 * When a key comes into its next state; undefined if it does not change by itself. Keys of checkpoints change only when
 * the operator says so, because auditors keep them, and are never removed, because checkpoints are kept as well.
 */
export function nextChange(
  key: KeyFacts,
  keys: readonly KeyFacts[],
  { rotateSeconds, announceSeconds, retireSeconds }: KeySchedule,
): number | undefined {
  if (key.state === "retired") return key.purpose === "checkpoint" ? undefined : sinceOf(key) + retireSeconds;
  const active = keys.find(isOf(key, "active"));
  const next = keys.find(isOf(key, "announced"));
  if (active === undefined || next === undefined) return undefined;
  const { replaceAtSeconds = Number.POSITIVE_INFINITY } = active;
  const byAge = active.purpose === "checkpoint" ? Number.POSITIVE_INFINITY : sinceOf(active) + rotateSeconds;
  const at = Math.max(Math.min(byAge, replaceAtSeconds), sinceOf(next) + announceSeconds);
  return Number.isFinite(at) ? at : undefined;
}
