/**
 * What the issuer of a subject says of them, as far as rules name it: groups and roles. It narrows what a rule allows, and
 * grants nothing. Our own design; a claim is read as strictly as a name.
 */
import * as v from "valibot";
import {
  CLAIM_LIST_MAX,
  CLAIM_POINTERS_MAX,
  CLAIM_TEXTS_MAX,
  CLAIM_VALUE_BYTES_MAX,
} from "../limits/input.ts";
import { fitsBytes, type JsonObject } from "../spec/rfc8259.ts";
import { canonicalize } from "../spec/rfc8785.ts";
import { claimAt, isPointer } from "../spec/workload-grant.ts";

/** PCL-D-1: by JSON pointer, the texts of which one has to be there. */
export type ClaimDemands = Readonly<Record<string, readonly string[]>>;

/** Why a claim has no texts that could match. */
export type NoTexts = "claims_absent" | "claims_unreadable" | "claims_overage";

/** Why what is demanded of the claims of a subject does not hold. */
export type ClaimsLack = NoTexts | "claims_too_old" | "claims_differ";

/** PCL-D-7: those of the texts at each pointer that some rule names, when they were true, and until when they count. */
export type SubjectClaims = {
  atSeconds: number;
  untilSeconds: number;
  values: Readonly<Record<string, readonly string[] | NoTexts>>;
};

/** What the issuer said last, as it is kept of each of its users; it is `stale` where the issuer says that it changed since. */
export type ClaimsWord = Omit<SubjectClaims, "untilSeconds"> & { stale?: boolean };

/** The texts that rules name of one issuer, by JSON pointer, and each set of demands by its text. */
export type WantedClaims = {
  texts: ReadonlyMap<string, ReadonlySet<string>>;
  demands: ReadonlyMap<string, ClaimDemands>;
};

// --- as written -------------------------------------------------------------------------------------------------

/** PCL-D-1: what has rules of its own, or is another one in each token. */
const NOT_FOR_RULES: ReadonlySet<string> = new Set(
  `iss sub aud exp nbf iat jti auth_time updated_at nonce sid txn azp client_id scope act may_act
   cnf acr amr at_hash c_hash events mandate_job _claim_names _claim_sources hasgroups`.split(/\s+/),
);

const topOf = (pointer: string): string => pointerNames(pointer)[0] ?? "";
export const pointerNames = (pointer: string): readonly string[] =>
  pointer
    .split("/")
    .slice(1)
    .map((one) => one.replaceAll("~1", "/").replaceAll("~0", "~"));

const pointer = v.pipe(
  v.string(),
  v.check(isPointer, "is not a JSON pointer, such as /groups"),
  v.check((text) => !NOT_FOR_RULES.has(topOf(text)), "is a claim that has rules of its own"),
);
const claimText = v.pipe(
  v.string(),
  v.nonEmpty("is empty"),
  v.maxBytes(CLAIM_VALUE_BYTES_MAX, "is too long"),
  v.check((text) => text.isWellFormed(), "is no text"),
);

export const claimDemands = v.pipe(
  v.record(pointer, v.pipe(v.array(claimText), v.minLength(1), v.maxLength(CLAIM_TEXTS_MAX))),
  v.minEntries(1, "names no claim"),
  v.maxEntries(CLAIM_POINTERS_MAX, `names more than ${CLAIM_POINTERS_MAX} claims`),
);

/** The same demands have the same text, in whatever order they are written. */
export const textOfDemands = (demands: ClaimDemands): string =>
  canonicalize(Object.fromEntries(Object.entries(demands).map(([at, texts]) => [at, texts.toSorted()])));

type Demanding = { subjects: { issuers: readonly string[]; claims?: ClaimDemands | undefined } };

/** What the rules demand, by issuer, so that where none does nothing is read or kept. */
export function compileClaims(rules: readonly Demanding[]): ReadonlyMap<string, WantedClaims> {
  const wanted = new Map<string, { texts: Map<string, Set<string>>; demands: Map<string, ClaimDemands> }>();
  for (const { subjects } of rules) {
    const {
      issuers: [issuer = ""],
      claims,
    } = subjects;
    if (claims === undefined) continue;
    const one = wanted.getOrInsertComputed(issuer, () => ({ texts: new Map(), demands: new Map() }));
    one.demands.set(textOfDemands(claims), claims);
    for (const [at, texts] of Object.entries(claims)) {
      const known = one.texts.getOrInsertComputed(at, () => new Set<string>());
      for (const text of texts) known.add(text);
    }
  }
  return wanted;
}

// --- as an issuer says it -----------------------------------------------------------------------------------------

/** PCL-D-7: what is kept of the claims of a verified token, or of what else their issuer said. */
export const readClaims = (claims: JsonObject, { texts }: WantedClaims, atSeconds: number): ClaimsWord => ({
  atSeconds,
  values: Object.fromEntries(
    [...texts].map(([at, named]) => {
      const said = textsAt(claims, at);
      return [at, typeof said === "string" ? said : [...new Set(said)].filter((one) => named.has(one))];
    }),
  ),
});

/** PCL-D-2: a text, or a list of texts, and nothing that would have to be turned into one. */
function textsAt(claims: JsonObject, at: string): readonly string[] | NoTexts {
  if (isElsewhere(claims, at)) return "claims_overage";
  const value = claimAt(claims, at);
  if (value === undefined || value === null || value === "") return "claims_absent";
  const list = Array.isArray(value) ? value : [value];
  if (list.length === 0) return "claims_absent";
  if (list.length > CLAIM_LIST_MAX) return "claims_unreadable";
  return list.every(isClaimText) ? list : "claims_unreadable";
}

const isClaimText = (value: unknown): value is string =>
  typeof value === "string" && value.isWellFormed() && fitsBytes(value, CLAIM_VALUE_BYTES_MAX);

/** PCL-D-3, PCL-D-4: what the issuer left out for want of room is not asked for where a token says. */
function isElsewhere({ _claim_names: names, hasgroups }: JsonObject, at: string): boolean {
  const top = topOf(at);
  const isNamed = typeof names === "object" && names !== null && Object.hasOwn(names, top);
  return isNamed || (top === "groups" && hasgroups !== undefined && hasgroups !== false);
}

/** PCL-D-8: of two words of the issuer the later one counts, and no other. */
export const latestOf = (
  one: SubjectClaims | undefined,
  other: SubjectClaims | undefined,
): SubjectClaims | undefined =>
  one === undefined || (other !== undefined && other.atSeconds >= one.atSeconds) ? other : one;

/** PCL-D-8: how long a word counts; one that is stale does not count any more. */
export const countedFor = (word: ClaimsWord, secondsMax: number): SubjectClaims => {
  const { atSeconds, values, stale } = word;
  return { atSeconds, untilSeconds: stale ? 0 : atSeconds + secondsMax, values };
};

// --- the comparison -----------------------------------------------------------------------------------------------

/** PCL-D-1, PCL-D-3, PCL-D-5: undefined where all that is demanded is there, byte for byte. */
export function lackOf(
  demands: ClaimDemands,
  claims: SubjectClaims | undefined,
  nowSeconds: number,
): ClaimsLack | undefined {
  if (claims === undefined) return "claims_absent";
  if (nowSeconds >= claims.untilSeconds) return "claims_too_old";
  for (const [at, texts] of Object.entries(demands)) {
    // A pointer that no rule named when the claims were kept.
    const said = Object.hasOwn(claims.values, at) ? claims.values[at] : undefined;
    if (said === undefined) return "claims_absent";
    if (typeof said === "string") return said;
    if (!said.some((one) => texts.includes(one))) return "claims_differ";
  }
  return undefined;
}

/** The demands that these claims do not meet, by their text. */
export const unmetDemands = (
  { demands }: WantedClaims,
  word: Pick<ClaimsWord, "values">,
): ReadonlyMap<string, ClaimDemands> => {
  const claims = { ...word, atSeconds: 0, untilSeconds: Number.POSITIVE_INFINITY };
  return new Map([...demands].filter(([, one]) => lackOf(one, claims, 0) !== undefined));
};

/**
 * PCL-D-15: whether an event says that these demands are not met any more: by the claims that it names, since nothing is said of
 * the others.
 */
export function isUnmetBy(demands: ClaimDemands, said: JsonObject): boolean {
  const named = Object.entries(demands).filter(([at]) => Object.hasOwn(said, topOf(at)));
  return named.some(([at, texts]) => {
    const found = textsAt(said, at);
    return typeof found === "string" || !found.some((one) => texts.includes(one));
  });
}
