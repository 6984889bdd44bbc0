/** The members of rules as they are written (PROD-2.6-7), each with what it is for; rules.ts says which mode has which. */
import * as v from "valibot";
import { SHOWN_TEXT_CHARS_MAX } from "../limits/input.ts";
import {
  ACCESS_TOKEN_SECONDS,
  ACCESS_TOKEN_SECONDS_MAX,
  ACT_HOPS_MAX,
  GRANT_SECONDS,
  GRANT_SECONDS_MAX,
  REPLACEMENTS_MAX,
  TOKEN_SECONDS_MIN,
  TRANSACTION_SECONDS,
  TRANSACTION_SECONDS_MAX,
} from "../limits/tokens.ts";
import type { Mode } from "../modes.ts";
import { maybe, setting, whole } from "../setting.ts";
import { claimDemands } from "./claims.ts";
import { detailObjects, detailTypeNames } from "./detail-types.ts";
import { names, pattern, scopes } from "./targets.ts";
import { worded } from "./worded.ts";

const patterns = v.pipe(v.array(pattern), v.minLength(1));

export const common = {
  id: setting(
    v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)),
    "The name of the rule, which the audit trail records.",
  ),
  targets: setting(names, "The targets, each by one of its names."),
  scopes: setting(scopes, "The most that is granted."),
  /** RAR-D-5 */
  details: maybe(
    detailObjects,
    "The most that is granted by `authorization_details` (RFC 9396); without it, and of types that it lacks, the rule sets no limit.",
  ),
  demands: maybe(detailTypeNames, "The types of `authorization_details` that a token has to have."),
  /** JOB-D-7 */
  jobs: maybe(
    v.picklist(["optional", "required", "never"]),
    'Whether it is for requests in a job: "optional" (the default), "required" or "never".',
  ),
};

/** RAR-D-6: what a target does not know cannot limit its tokens. */
export const lapses = maybe(
  detailTypeNames,
  "The types of `authorization_details` of a subject token that may be left away for targets that do not declare them.",
);

const lifetimeSeconds = (otherwise: number, max: number) =>
  setting(
    v.optional(v.pipe(v.number(), v.integer(), v.minValue(TOKEN_SECONDS_MIN), v.maxValue(max)), otherwise),
    "How many seconds what it issues is valid: a token 300 by default and 3600 at most, a grant or a transaction token 60 and 300.",
  );

// RFC6750-5.2-9, RFC6750-5.3-2, RFC9449-11.2-1: access tokens are valid for at most an hour.
export const accessToken = {
  lifetimeSeconds: lifetimeSeconds(ACCESS_TOKEN_SECONDS, ACCESS_TOKEN_SECONDS_MAX),
};

/** The members for the product of an exchange, which does not depend on the mode; each product has its own. */
const issuesText =
  'What the rule issues: "access_token" (the default), "grant" for a partner, or "transaction" for a trust domain.';
export const asAccessToken = {
  issues: maybe(v.literal("access_token"), issuesText),
  lapses,
  ...accessToken,
};
export const asGrant = {
  issues: setting(v.literal("grant"), issuesText),
  // IDC-5.5-1, EMA-7.4.2-1: grants are short-lived.
  lifetimeSeconds: lifetimeSeconds(GRANT_SECONDS, GRANT_SECONDS_MAX),
  /** IDJAG-4.3-3: the rule lists the kinds of subject token that may become an ID-JAG. */
  idJagSubjects: maybe(
    v.pipe(v.array(v.picklist(["id_token", "jwt", "access_token"])), v.minLength(1)),
    "The kinds of subject token for which an ID-JAG is issued; ID tokens by default.",
  ),
  /** JOB-D-16 */
  acknowledgeJob: maybe(
    v.literal("job-ends-here"),
    '"job-ends-here": in a job too, it issues grants for partners that go on when the job has ended.',
  ),
};

export const maxChainDepth = maybe(
  v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(ACT_HOPS_MAX)),
  "The longest chain of actors in the issued token.",
);

/** PROD-2.6-4: the members for the subjects, and for how they consent. */
export const consentText =
  'How the subject agrees: "record" (a consent on record), "may_act" (the token names the actor), or "implied", which needs `acknowledge`.';
export const acknowledgeText = 'For "implied" consent: "subjects-not-asked".';
export const forWhom = {
  subjects: setting(
    v.pipe(
      v.strictObject({
        issuers: setting(names, "The issuers that they come from."),
        subs: maybe(names, "Only these, by their `sub` there; without it, all."),
        claims: maybe(
          claimDemands,
          "Only those of whom their one issuer says this: by JSON pointer, the texts of which a claim has to have one, such as a group; all of them have to match.",
        ),
        because: maybe(
          worded(SHOWN_TEXT_CHARS_MAX),
          'What a user reads of why they are asked: a sentence such as "You are in Engineering.", in one text or one by language.',
        ),
      }),
      v.check(
        ({ issuers, claims }) => claims === undefined || issuers.length === 1,
        '"claims" requires exactly one issuer, since the same name means another group elsewhere',
      ),
      v.check(
        ({ because, claims }) => because === undefined || claims !== undefined,
        '"because" has no effect without "claims"',
      ),
    ),
    "The subjects that the rule is for.",
  ),
  consent: setting(v.picklist(["record", "may_act", "implied"]), consentText),
  acknowledge: maybe(v.literal("subjects-not-asked"), acknowledgeText),
};

const exchange = {
  ...common,
  ...forWhom,
  /** PROD-2.6-5, PROD-2.6-9: at least one of the two is required; a subject token matches by any one of the values. */
  subjectToken: setting(
    v.pipe(
      v.strictObject({
        audiences: maybe(names, 'Audiences; "self" stands for every target that the actor owns.'),
        scopes: maybe(scopes, "Scopes."),
      }),
      v.check(
        ({ audiences, scopes }) => audiences !== undefined || scopes !== undefined,
        "names neither audiences nor scopes",
      ),
    ),
    "What a subject token must have to be exchanged: one of `audiences`, or one of `scopes`.",
  ),
  boundSubject: maybe(
    v.picklist(["proof", "audience"]),
    'Which callers may exchange a bound token: "proof" (the default), those with its key; "audience", also the target it is for.',
  ),
  unbound: maybe(v.boolean(), "Whether an unbound token may come out of a bound one; false by default."),
};

/** Whether the text can name a class of registered clients; initial access tokens put clients into classes. */
export const isClassName = (text: string): boolean => /^[a-z0-9-]{1,63}$/.test(text);

const className = v.pipe(
  v.string(),
  v.check(isClassName, "is not a class name: 1 to 63 characters of a-z, 0-9 and -"),
);
export const actorsText =
  "The callers by SPIFFE ID, as workloads of a platform (platform://NAME/…), or by a prefix that ends in /*.";
export const who = {
  actors: maybe(patterns, actorsText),
  clients: maybe(
    names,
    "The callers by client_id, or all metadata documents of an origin (https://agents.example/*).",
  ),
  classes: maybe(
    v.pipe(v.array(className), v.minLength(1)),
    "The callers by the class in which they registered.",
  ),
};

export const allow = <const M extends Mode>(mode: M) =>
  setting(v.literal(mode), "The mode: what kind of request the rule allows.");

export const delegation = {
  allow: allow("delegation"),
  actors: setting(patterns, actorsText),
  maxChainDepth,
  /** An impersonation does not have this member, because a user is asked about agents that the token shows. */
  askUser: maybe(
    v.boolean(),
    "Whether a refused agent gets a link at which the user can give the consent that alone is missing; false by default.",
  ),
  ...exchange,
};
export const impersonation = { allow: allow("impersonation"), ...who, ...exchange };

const { unbound: _, ...bearer } = exchange;

/** TXN-D-2: no other rule issues transaction tokens, and this one issues nothing else; they are bound to no key. */
export const transaction = {
  allow: allow("transaction"),
  issues: setting(v.literal("transaction"), issuesText),
  /** TXN-D-7: a client without a workload is in no trust domain. */
  actors: setting(patterns, actorsText),
  ...bearer,
  maxChainDepth,
  lapses,
  lifetimeSeconds: lifetimeSeconds(TRANSACTION_SECONDS, TRANSACTION_SECONDS_MAX),
  /** TXN-D-10, TXN-13.15-3 */
  replacements: setting(
    v.optional(whole(0, REPLACEMENTS_MAX), 0),
    "How often a transaction token may be replaced by another, whose life ends no later; not at all by default.",
  ),
};
