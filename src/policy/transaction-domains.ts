/**
 * Trust domains inside which transaction tokens are used: targets of their own kind, which get such tokens and nothing
 * else (TXN-D-1). The entry says what a purpose needs, and which facts a token may state about its call.
 */
import * as v from "valibot";
import { CONTEXT_CHARS, CONTEXT_CHARS_MAX } from "../limits/tokens.ts";
import { flag, setting, whole } from "../setting.ts";
import { isScopeToken } from "../spec/rfc6749.ts";
import { AT_JWT } from "../spec/rfc9068.ts";
import { type DomainRules, REQUESTERS } from "../spec/transaction-tokens.ts";
import { commonOfTargets, kindText, pattern, scopes } from "./targets.ts";

/** TXN-11.1-1: the name stands in `audience`, where a URL would be that of an API or of another server. */
const bareName = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9](?:[a-z0-9._-]{0,253}[a-z0-9])?$/, "is not the bare name of a trust domain"),
);

const memberName = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/, "is not a name: letters, digits, _ . -, a letter first"),
  v.check((name) => name !== REQUESTERS && !(name in {}), "is a reserved name"),
);

const value = {
  is: setting(v.picklist(["string", "integer", "boolean", "strings"]), "What its value is."),
  chars: setting(
    v.optional(whole(1, CONTEXT_CHARS_MAX), CONTEXT_CHARS),
    "The characters of each of its texts, at most.",
  ),
};

const optional = flag("Whether a token is also issued without it");
const fromText =
  'Who says so: "token" (a claim of the subject token), "authorization_details", "computed" (this server), or "witness" (a workload that saw the call).';

/** TXN-D-9 */
const Fact = v.variant("from", [
  v.strictObject({
    from: setting(v.literal("token"), fromText),
    claim: setting(v.pipe(v.string(), v.nonEmpty()), "The claim of the subject token."),
    optional,
  }),
  v.strictObject({
    from: setting(v.literal("authorization_details"), fromText),
    type: setting(v.string(), "The type of the one object that has it."),
    field: setting(v.string(), "Its field."),
    optional,
  }),
  v.strictObject({
    from: setting(v.literal("computed"), fromText),
    value: setting(v.picklist(["job", "acr", "auth_time"]), "The job, or how or when the user signed in."),
    optional,
  }),
  v.strictObject({
    from: setting(v.literal("witness"), fromText),
    workloads: setting(
      v.pipe(v.array(pattern), v.minLength(1)),
      "The workloads whose word counts, of those that request the token.",
    ),
    ...value,
    optional,
  }),
]);

const tellsJob = (facts: { [name: string]: v.InferOutput<typeof Fact> }): boolean =>
  Object.values(facts).some((fact) => fact.from === "computed" && fact.value === "job");

const { chain: _, scopes: __, ...further } = commonOfTargets;

export const TransactionDomain = v.pipe(
  v.strictObject({
    kind: setting(v.literal("transaction"), kindText),
    names: setting(
      v.pipe(v.array(bareName), v.length(1)),
      "The name of the trust domain, which requests give as audience.",
    ),
    owners: setting(
      v.pipe(v.array(pattern), v.minLength(1)),
      "The workloads of the domain, of which those get tokens that a rule names.",
    ),
    /** TXN-D-4: a purpose without scopes would be open to every subject token, so it cannot be written. */
    purposes: setting(
      v.pipe(
        v.record(v.pipe(v.string(), v.check(isScopeToken, "is not a scope token")), scopes),
        v.check((all) => Object.keys(all).length > 0, "is empty"),
      ),
      "By purpose, which is a scope inside the domain: the scopes that a subject token needs for it, every one of them.",
    ),
    rctx: setting(
      v.optional(v.record(memberName, v.strictObject(value)), {}),
      "By name: the members of `request_context` that a token repeats as claimed by its requester.",
    ),
    tctx: setting(
      v.optional(v.record(memberName, Fact), {}),
      "By name: the facts that a token states as verified, each with who says so.",
    ),
    /** TXN-D-6 */
    chain: setting(
      v.optional(v.picklist(["none", "current", "all"]), "none"),
      'The actors that its tokens show: "none" (the default), the "current" one, or "all".',
    ),
    ...further,
  }),
  v.transform(({ kind: _kind, purposes, rctx, tctx, ...rest }) => ({
    ...rest,
    scopes: Object.keys(purposes),
    introspectors: [],
    binding: "none" as const,
    typ: AT_JWT as typeof AT_JWT,
    checks: "offline" as const,
    people: false,
    // JOB-D-15: what no fact tells of its job, neither token nor answer tells.
    job: tellsJob(tctx) ? ("pairwise" as const) : ("hidden" as const),
    transaction: { purposes, rctx, tctx },
  })),
);

type Written = v.InferOutput<typeof TransactionDomain>["transaction"];

/** The entry with its tables as maps, because a name may be that of an inherited property. */
export const readDomain = ({ purposes, rctx, tctx }: Written): DomainRules => ({
  purposes: new Map(Object.entries(purposes)),
  rctx: new Map(Object.entries(rctx)),
  tctx: new Map(Object.entries(tctx)),
});
