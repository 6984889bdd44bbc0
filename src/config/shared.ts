/** The parts of rules in memory: in a large policy many rules have the same targets, scopes and subjects. */
import * as v from "valibot";
import { SHARED_VALUES_MAX } from "../limits/process.ts";
import { Rule } from "../policy/rules.ts";

/** Parts that rules often have in common, and lists that most have to themselves. */
const COMMON = new Set(["targets", "scopes", "subjects", "subjectToken"]);
const OWN = new Set(["actors", "clients", "classes"]);

/** Parts are known by their text in JSON, which tells apart all values that JSON can write. */
const sharedParts = new Map<string, object>();

/** Changes a rule that the schema just made: a part that is equal to one of another rule becomes that one. */
export function shareParts<T extends object>(rule: T): T {
  const parts = rule as Record<string, unknown>;
  for (const name in parts) {
    const part = parts[name];
    if (COMMON.has(name)) parts[name] = shared(part as object);
    // The list is copied, because the schema filled it entry by entry, for which V8 took room for 17.
    else if (OWN.has(name) && Array.isArray(part)) parts[name] = part.slice();
  }
  return rule;
}

/**
 * A shared part is frozen, because several rules have it. At the limit all are forgotten, which takes memory and
 * changes nothing else.
 */
function shared(part: object): object {
  const text = JSON.stringify(part);
  const same = sharedParts.get(text);
  if (same !== undefined) return same;
  if (sharedParts.size === SHARED_VALUES_MAX) sharedParts.clear();
  // The part is parsed anew, so that lists in it have no spare room either.
  const kept: object = Object.freeze(JSON.parse(text));
  sharedParts.set(text, kept);
  return kept;
}

/**
 * This comes at the end, because with a transformation inside a part a problem of that part would hide those of the
 * whole rule.
 */
export const SharingRule = v.pipe(Rule, v.transform(shareParts));
