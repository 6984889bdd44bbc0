/** `mandate keys list`: each key with its state and its next change. */
import { EXIT } from "../../limits/process.ts";
import { defined } from "../../result.ts";
import { type KeyFacts, nextChange } from "../../settings/key-life.ts";
import type { KeySchedule } from "../../settings/sections.ts";
import type { Admin } from "../command.ts";
import { fields, jsonLine, time, word } from "../text.ts";

export async function listKeys({ settings, store, print }: Admin, json: boolean): Promise<number> {
  const keys = await store.keys.list();
  const show = json ? keyRecord : keyLine;
  for (const key of keys) print(show(key, keys, settings.keys));
  return EXIT.done;
}

type KeyJson = {
  kid: string;
  state: KeyFacts["state"];
  purpose: KeyFacts["purpose"];
  alg: string;
  created_at: number;
  /** When it came into its state. */
  since: number;
  /** Absent if the key does not change by itself. */
  next_change_at?: number;
};

function keyRecord(key: KeyFacts, keys: readonly KeyFacts[], schedule: KeySchedule): string {
  const { kid, state, purpose, alg, createdAtSeconds, sinceSeconds = createdAtSeconds } = key;
  return jsonLine(
    defined<KeyJson>({
      kid,
      state,
      purpose,
      alg,
      created_at: createdAtSeconds,
      since: sinceSeconds,
      next_change_at: nextChange(key, keys, schedule),
    }),
  );
}

const NEXT = { announced: "signs-from", active: "signs-until", retired: "removed" } as const;

function keyLine(key: KeyFacts, keys: readonly KeyFacts[], schedule: KeySchedule): string {
  const { kid, state, purpose, alg, createdAtSeconds, sinceSeconds = createdAtSeconds } = key;
  const next = nextChange(key, keys, schedule);
  const rest = fields({
    purpose,
    alg: word(alg),
    created: time(createdAtSeconds * 1000),
    since: time(sinceSeconds * 1000),
    [NEXT[state]]: next === undefined ? undefined : time(next * 1000),
  });
  return `${word(kid)} ${state} ${rest}`;
}
