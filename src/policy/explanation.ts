/** The trace of a decision in words, for the people who write rules. */
import type { Meant } from "../audit/event.ts";
import { MODES } from "../modes.ts";
import type { AccessRequest, Condition, Fallen, Trace } from "./access.ts";
import type { DetailSide } from "./details.ts";
import { type KnownNames, nearest } from "./nearest.ts";
import type { PolicySet } from "./rules.ts";

const CONDITIONS: Record<Condition, string> = {
  actor: "the caller's workload is not among its actors",
  target: "it does not name this target",
  subject_issuer: "it does not name the issuer of the subject",
  subject: "it does not name this subject",
  claims_absent: "the issuer says nothing of the subject in a claim that it demands",
  claims_unreadable:
    "a claim of the subject that it demands is no text and no list of texts, or is too large",
  claims_overage:
    "the issuer left a claim that it demands out of the token (at Entra, over 200 groups): emit the groups that are assigned to the app, or use app roles",
  claims_too_old: "what the issuer said last of the subject is too old, or has changed since",
  claims_differ: "the subject has none of the values that it demands of a claim",
  subject_token: "the type, audience or scope of the subject token does not let this caller exchange it",
  subject_key:
    "the subject token is bound to a key, and the rule does not let another than its holder exchange it",
  sign_in: "the user's sign-in is older than it permits, or has no context class that it names",
  pushed: "it demands a pushed authorization request",
  job: "the job does not permit it, or the rule requires one, or is for no job",
  consent: "the consent that it requires is missing",
  chain_depth: "the chain of actors would be too long",
  binding: "the token has to be bound to a key that this request does not prove",
  binding_conflict: "the target takes no tokens that are bound by a DPoP proof",
  lifetime: "the subject token ends too soon",
  scope: "none of the requested scopes is left",
  details_type: "the subject token has authorization_details of a type that the target does not declare",
  details: "nothing is left of the authorization_details of a type, or a type that it demands is missing",
};

const SIDES: Record<Fallen["at"], string> = {
  client: "the client is not registered for it",
  subject_token: "the subject token does not have it",
  rule: "the rule does not allow it",
  target: "the target does not have it",
  job: "the job does not include it",
  consent: "the consent does not cover it",
};

const DETAIL_SIDES: Record<DetailSide, string> = {
  request: "the request does not ask for it",
  subject_token: "the subject token does not have it",
  rule: "the rule does not allow it",
  consent: "the consent does not cover it",
  job: "the bounds of the job leave it out",
  scope: "none of the scopes that its type governs is granted",
};

/**
 * One line for each rule, and for each scope and object that was not granted; the lines repeat nothing of the question but
 * scopes and types.
 */
export function formatTrace(trace: Trace): readonly string[] {
  if (trace.length === 0) return ["No rule was checked for this caller and target."];
  return trace.flatMap(({ rule, failed, also = [], fallen = [], fallenDetails = [] }) => [
    `Rule ${rule}: ${failed === undefined ? "allows this." : `no, ${CONDITIONS[failed]}.`}`,
    ...also.map((one) => `  Besides, ${CONDITIONS[one]}.`),
    ...fallen.map(({ scope, at }) => `  Scope ${scope} is not granted: ${SIDES[at]}.`),
    ...fallenDetails.map(
      ({ type, index, at }) => `  Object ${index + 1} of type ${type} is not granted: ${DETAIL_SIDES[at]}.`,
    ),
  ]);
}

/** So many unknown scopes of one request are looked at. */
const SCOPES_MAX = 4;

/** POLICY-D-22: what a refused request names that is unknown here, each with the known name that is like it. */
export function likeUnknown(
  { known }: PolicySet,
  { target, scope = [] }: Named,
): readonly Meant[] | undefined {
  const found = (names: KnownNames, asked: string): readonly Meant[] => {
    const like = nearest(asked, names.beside(asked));
    return like === undefined ? [] : [{ asked, known: like }];
  };
  const targets = target === undefined || known.target.has(target) ? [] : [target];
  const scopes = scope.filter((one) => !known.scope.has(one)).slice(0, SCOPES_MAX);
  const meant = [
    ...targets.flatMap((one) => found(known.target, one)),
    ...scopes.flatMap((one) => found(known.scope, one)),
  ];
  return meant.length > 0 ? meant : undefined;
}

type Named = Pick<AccessRequest, "target" | "scope">;

// --- the ladder ---------------------------------------------------------------------------------------------------

/** The conditions in the order in which they are judged, each as it reads where it holds. */
const RUNGS: readonly (readonly [Condition, string, applies?: (asked: AccessRequest) => boolean])[] = [
  ["actor", "the rule names the caller"],
  ["subject_issuer", "the issuer of the subject", hasSubject],
  ["subject", "the subject", hasSubject],
  ["claims_absent", "the claims of the subject", ({ subject }) => subject?.claims !== undefined],
  ["subject_token", "the subject token may be exchanged by this caller", hasSubject],
  ["sign_in", "the sign-in of the user", ({ mode }) => MODES[mode].brings === "code"],
  ["subject_key", "the key of the subject token", ({ subject }) => subject?.boundTo !== undefined],
  ["job", "the job", ({ job }) => job !== undefined],
  ["consent", "the consent of the subject", hasSubject],
  ["chain_depth", "the length of the chain", ({ subject }) => (subject?.chain.length ?? 0) > 0],
  ["binding", "the token is bound as demanded"],
  ["lifetime", "what is presented is valid for long enough"],
  ["scope", "something is left of the scope"],
  ["details", "something is left of the details", ({ details }) => details !== undefined],
];

function hasSubject({ subject }: AccessRequest): boolean {
  return subject !== undefined;
}

export type Rung = { text: string; holds: boolean };
export type Ladder = {
  rule: string;
  rungs: readonly Rung[];
  scopes: readonly { scope: string; fell?: Fallen["at"] }[];
};

/** Of the rule that lacks the fewest conditions: each that counts for the request, with whether it holds. */
export function ladderOf(trace: Trace, asked: AccessRequest): Ladder | undefined {
  const lacks = ({ failed, also = [] }: Trace[number]): readonly Condition[] =>
    failed === undefined ? [] : [failed, ...also];
  const [nearest] = trace.toSorted((a, b) => lacks(a).length - lacks(b).length);
  if (nearest === undefined) return undefined;
  const missing = new Set(lacks(nearest).map((one) => (one.startsWith("claims_") ? "claims_absent" : one)));
  const rungs = RUNGS.filter(
    ([condition, , applies]) => missing.has(condition) || (applies?.(asked) ?? true),
  );
  const { fallen = [] } = nearest;
  const kept = (asked.scope ?? []).filter((one) => !fallen.some(({ scope }) => scope === one));
  return {
    rule: nearest.rule,
    rungs: rungs.map(([condition, text]) => ({ text, holds: !missing.has(condition) })),
    scopes: [...kept.map((scope) => ({ scope })), ...fallen.map(({ scope, at }) => ({ scope, fell: at }))],
  };
}
