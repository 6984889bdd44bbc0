/**
 * `mandate policy replay`: decides the recorded requests again, from the trail alone, and says what another policy would
 * have decided of them. Nothing is printed before all of the trail was read.
 */
import { hash } from "../../adapters/crypto/hash.ts";
import { RECORD_VERSION } from "../../audit/event.ts";
import { type Recorded, readRecorded } from "../../audit/recorded.ts";
import { claimDigest, describeDetails } from "../../flows/audit-fields.ts";
import { readArchive } from "../../policy/archive.ts";
import { decideAgain, differing, gather, isDecided, recordedOf } from "../../policy/replay.ts";
import type { PolicySet } from "../../policy/rules.ts";
import { err, ok, type Result } from "../../result.ts";
import { word } from "../text.ts";
import { addChange, addDiffering, count, type Example, emptyTally, type Tally } from "./tally.ts";
import type { TrailSource } from "./trail-source.ts";

export type ReplayOptions = {
  fromMs: number;
  toMs: number;
  /** The policy that is tried. */
  next?: PolicySet;
};

/** Every event of the period; an error says what of the trail cannot be read as what it is. */
export async function replay(
  source: TrailSource,
  { fromMs, toMs, next }: ReplayOptions,
): Promise<Result<Tally, readonly string[]>> {
  const trail = gather(digest);
  for await (const body of source.told()) {
    const read = readRecorded(body);
    if (read !== undefined) trail.take(read);
  }
  const faults: string[] = [];
  const policies = policiesOf(source, faults);
  const order = new Order();
  const tally = emptyTally();
  let number = 0;
  for await (const body of source.events(fromMs)) {
    number++;
    const event = readRecorded(body);
    const fault =
      event === undefined ? `event ${number} of the trail is cut, or no event` : order.take(event);
    if (fault !== undefined || event === undefined) return err([fault ?? ""]);
    const timeMs = Date.parse(event.time);
    if (timeMs < fromMs || timeMs >= toMs) continue;
    const why = apartBecause(event);
    if (why !== undefined || !isDecided(event)) {
      if (why !== undefined) count(tally.apart, why);
      continue;
    }
    const policy = await policies(event.policy?.digest ?? "");
    if (policy === undefined) continue;
    if (next !== undefined && next.issuer !== policy.issuer)
      return err([
        `the trail is that of ${word(policy.issuer)}, and the new policy that of ${word(next.issuer)}`,
      ]);
    const again = decideAgain(policy, event, trail, describe);
    if (!again.ok) {
      count(tally.apart, APART[again.error]);
      continue;
    }
    const was = recordedOf(event);
    const members = differing(was, again.value);
    const example: Example = { event, was, is: again.value };
    if (members.length > 0) {
      addDiffering(tally, members, example);
      continue;
    }
    tally.same++;
    const tried = next && decideAgain(next, event, trail, describe);
    if (tried === undefined) continue;
    if (tried.ok) addChange(tally, differing(was, tried.value), { event, was, is: tried.value });
    else count(tally.apart, APART[tried.error]);
  }
  const gap = order.end();
  if (gap !== undefined) faults.push(gap);
  return faults.length > 0 ? err(faults) : ok(tally);
}

export const digest = (text: string): string => claimDigest(hash, text);

export const describe: Parameters<typeof decideAgain>[3] = (types, details) =>
  describeDetails(hash, types, details);

/** REPL-D-5: what is counted apart, and under which words. */
export const APART = {
  consents_too_many: "its agent had more consents of the user than an event names",
  consent_unknown:
    "a consent that it read is not told by this trail: its event was removed, or is not in the export",
  job_unknown: "its job is not told by this trail: its event was removed, or is not in the export",
  details_private: "it depends on private values of authorization_details, of which the trail has digests",
  no_request: "it names no caller",
} as const;

const BEFORE = "refused before the policy decided, or by what changed while the token was written";

function apartBecause({ v, mode, facts }: Recorded): string | undefined {
  if (v !== RECORD_VERSION && mode !== undefined)
    return `recorded in version ${v}, which does not say what a decision read`;
  return facts === undefined && mode !== undefined ? BEFORE : undefined;
}

/** Finds each policy once; what cannot be found or read is added to the faults. */
function policiesOf(source: TrailSource, faults: string[]) {
  const found = new Map<string, PolicySet | undefined>();
  return async (digest: string): Promise<PolicySet | undefined> => {
    if (found.has(digest)) return found.get(digest);
    const policy = await policyOf(source, digest);
    if (!policy.ok) faults.push(policy.error);
    found.set(digest, policy.ok ? policy.value : undefined);
    return found.get(digest);
  };
}

async function policyOf(source: TrailSource, digest: string): Promise<Result<PolicySet, string>> {
  const text = await source.policy(digest);
  if (text === undefined) return err(`the policy ${word(digest)} is not in the archive`);
  if (!text.ok) return text;
  const read = readArchive(text.value, digest);
  return read.ok ? read : err(`the archived policy ${word(digest)} ${read.error}`);
}

/** Whether no event is missing, twice there or in the wrong place, which needs no hash. */
class Order {
  readonly #logs = new Map<string, { first: number; last: number; count: number; timeMs: number }>();

  /** A lower number may only follow where the clock was set back. */
  take({ log, seq, time }: Recorded): string | undefined {
    const timeMs = Date.parse(time);
    const known = this.#logs.get(log);
    if (known === undefined) {
      this.#logs.set(log, { first: seq, last: seq, count: 1, timeMs });
      return undefined;
    }
    if (seq <= known.last && timeMs <= known.timeMs)
      return `${word(log)}: record ${seq} follows record ${known.last}: the records were reordered`;
    known.first = Math.min(known.first, seq);
    known.last = Math.max(known.last, seq);
    known.timeMs = timeMs;
    known.count++;
    return undefined;
  }

  end(): string | undefined {
    for (const [log, { first, last, count }] of this.#logs) {
      const missing = last - first + 1 - count;
      if (missing !== 0)
        return `${word(log)}: ${Math.abs(missing)} records ${missing > 0 ? "are missing" : "are there twice"}`;
    }
    return undefined;
  }
}
