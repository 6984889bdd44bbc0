/** `mandate keys withdraw`: a key that leaked ends with all that it signed, in one step with the event that says so. */

import { clock } from "../../adapters/clock.ts";
import { hash } from "../../adapters/crypto/hash.ts";
import { keepKeys, keyEvent } from "../../adapters/crypto/key-ring.ts";
import type { KeyChange, KeyRow } from "../../adapters/store/store.ts";
import { previewEnding } from "../../flows/endings.ts";
import { KEY_POLL_SECONDS } from "../../limits/keys.ts";
import { EXIT } from "../../limits/process.ts";
import { buildEnding, type EndingSelector } from "../../policy/endings.ts";
import { defined } from "../../result.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { recordAsAdmin } from "../admin-log.ts";
import type { Admin } from "../command.ts";
import { jsonLine, word } from "../text.ts";
import { endingPortsOf } from "../tokens.ts";
import { keeperOf, whyUnusable, withOperator } from "./rotate.ts";

type Withdrawal = { kid: string; dryRun: boolean; json: boolean };

export async function withdrawKey(admin: Admin, { kid, dryRun, json }: Withdrawal): Promise<number> {
  const { store, settings, print, printError } = admin;
  const keys = await store.keys.list();
  const key = keys.find((one) => one.kid === kid);
  const refusal = refusalOf(kid, key);
  if (key === undefined || refusal !== undefined) {
    printError(`Cannot withdraw ${word(kid)}: ${refusal}.`);
    return EXIT.refused;
  }
  const selector: EndingSelector = { by: "key", kid };
  const { count } = await previewEnding(endingPortsOf(admin), selector, { limit: 0 });
  if (dryRun) {
    print(json ? jsonLine({ kid, ends: count }) : `Would end: ${count} tokens. Nothing was changed.`);
    return EXIT.done;
  }
  const next =
    key.state === "active"
      ? keys.find((one) => isSuccessor(one, key) && one.state === "announced")
      : undefined;
  const announced = next !== undefined && isKnown(next, settings.keys.cacheSeconds);
  const event = keyEvent("key.withdrawn", "by_operator", key, { state: key.state, successor: next?.kid });
  const done = await recordAsAdmin(store, {
    event: withOperator(admin, event),
    ending: buildEnding(hash.sha256, selector, clock.nowMs()),
    keys: changesOf(key, next),
  });
  if (!done) {
    printError(`The state of ${word(kid)} changed meanwhile, and nothing was written: try again.`);
    return EXIT.refused;
  }
  // Where this command cannot make keys, the instances do it.
  const unusable = await whyUnusable(admin);
  if (unusable !== undefined) printError(`The key is withdrawn. ${unusable}.`);
  const after = unusable === undefined ? await keepKeys(keeperOf(admin)) : await store.keys.list();
  const signs = after.find((one) => isSuccessor(one, key) && one.state === "active")?.kid;
  if (json) print(jsonLine(defined<JsonObject>({ kid, ended: count, signs, announced })));
  else for (const line of report(admin, key, count, signs, announced)) print(line);
  return EXIT.done;
}

/** Whether every verifier has fetched the key since it was published. */
const isKnown = (
  { createdAtSeconds, sinceSeconds = createdAtSeconds }: KeyRow,
  cacheSeconds: number,
): boolean => sinceSeconds + cacheSeconds + KEY_POLL_SECONDS <= clock.nowSeconds();

const isSuccessor = (one: KeyRow, { purpose, alg }: KeyRow): boolean =>
  one.purpose === purpose && one.alg === alg;

function refusalOf(kid: string, key: KeyRow | undefined): string | undefined {
  if (key === undefined) return 'there is no such key; see "keys list"';
  return key.purpose === "checkpoint"
    ? `it signs checkpoints, and the checkpoints that it signed prove nothing without it. Let another key sign ("keys rotate --purpose checkpoint"); the witness proves what ${word(kid)} signed before`
    : undefined;
}

function changesOf({ kid, state }: KeyRow, next: KeyRow | undefined): readonly KeyChange[] {
  const removed: KeyChange = { kid, from: state, to: "removed" };
  if (next === undefined) return [removed];
  return [removed, { kid: next.kid, from: "announced", to: "active", sinceSeconds: clock.nowSeconds() }];
}

function report(
  { settings }: Admin,
  { kid, state, purpose }: KeyRow,
  count: number,
  signs: string | undefined,
  wasAnnounced: boolean,
): readonly string[] {
  const { cacheSeconds } = settings.keys;
  const fetched = `within ${cacheSeconds} s, when they fetch /jwks again`;
  const verifiers =
    purpose === "grant"
      ? `Partners accept grants that it signed until they expire, or refuse them ${fetched}.`
      : `Resource servers that verify tokens offline refuse what it signed ${fetched}.`;
  const successor =
    state !== "active" || signs === undefined
      ? []
      : wasAnnounced
        ? [`${word(signs)} signs now; it was announced before, so verifiers know it.`]
        : [
            `${word(signs)} signs now. It was announced only shortly before: verifiers learn of it ${fetched}.`,
          ];
  return [
    `Withdrawn: ${word(kid)}. Ended: ${count} tokens that it signed and that were still valid.`,
    ...successor,
    verifiers,
  ];
}
