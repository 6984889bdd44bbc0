/** An order to end tokens, as `/revocations` and the operator's command take it: one selector, and how to show it first. */
import * as v from "valibot";
import { STRING_BYTES_MAX } from "../limits/input.ts";
import { ENDED_PAGE, ENDED_PAGE_MAX } from "../limits/tokens.ts";
import { defined, err, ok, type Result } from "../result.ts";
import type { Json } from "../spec/rfc8259.ts";
import { isTrustDomainName } from "../spec/spiffe/id.ts";
import { isWorkloadName } from "../spec/workload-grant.ts";
import type { Origin } from "./access.ts";
import type { EndingSelector } from "./endings.ts";
import { describeIssue } from "./messages.ts";

const name = v.pipe(
  v.string(),
  v.nonEmpty("is empty"),
  v.maxLength(STRING_BYTES_MAX, "is too long"),
  // Such a text is refused, because nothing on record has NUL in its name, and PostgreSQL takes no such text.
  v.excludes("\0", "holds U+0000"),
);
const wholeNumber = v.pipe(v.number(), v.integer(), v.minValue(1));
/**
 * A time has at most ten digits, as seconds have until the year 2286; a time in milliseconds would end everything until
 * now.
 */
const time = v.pipe(wholeNumber, v.maxValue(9_999_999_999, "is not in seconds"));

const workload = v.pipe(
  name,
  v.check(isWorkloadName, "is neither the SPIFFE ID of a workload nor the name of a platform's"),
);

const SELECTORS = {
  token: name,
  /** The subject at the issuer that first vouched for it; the issuer is ours for a client that acts for itself. */
  subject: v.strictObject({ iss: name, sub: name, upTo: v.optional(time) }),
  actor: workload,
  client: name,
  trustDomain: v.pipe(name, v.check(isTrustDomainName, "is not the name of a trust domain")),
  issuer: name,
  rule: name,
  consent: name,
  /** What a user gave by one click: the refresh tokens, and what was issued for them. */
  grant: name,
  /** A job of ours, with all that was issued for it. */
  job: name,
  /** What every user gave by a click. */
  everyGrant: v.strictObject({}),
  /** `upTo` is in seconds since 1970; without it, what was issued until now is ended. */
  everything: v.strictObject({ upTo: v.optional(time) }),
};
type SelectorName = keyof typeof SELECTORS;
const SELECTOR_NAMES = Object.keys(SELECTORS) as SelectorName[];

export const WrittenOrder = v.strictObject({
  ...v.partial(v.object(SELECTORS)).entries,
  /** Beside `subject`: true keeps it out until false enables it again. */
  disabled: v.optional(v.boolean()),
  dryRun: v.optional(v.boolean(), false),
  /** The size of a page of a dry run, and the last token of the page before. */
  limit: v.optional(v.pipe(wholeNumber, v.maxValue(ENDED_PAGE_MAX)), ENDED_PAGE),
  after: v.optional(name),
});
type Order = v.InferOutput<typeof WrittenOrder>;

type RevocationOrder = {
  selector: EndingSelector;
  /** Enables the subject again, and ends nothing. */
  enables?: Origin;
  dryRun: boolean;
  page: { limit: number; afterJti?: string };
};

/** Reads an order; every problem comes back with its path. `us` is this server, whose jobs are meant. */
export function parseRevocation(json: Json, us: string): Result<RevocationOrder, readonly string[]> {
  const parsed = v.safeParse(WrittenOrder, json);
  if (!parsed.success) {
    return err(parsed.issues.map((issue) => describeIssue(issue, "the request")));
  }
  const { dryRun, limit, after: afterJti } = parsed.output;
  const [selector, ...others] = SELECTOR_NAMES.flatMap((one) => READERS[one](parsed.output, us) ?? []);
  if (selector === undefined || others.length > 0) {
    return err([`the request must name exactly one of ${SELECTOR_NAMES.join(", ")}`]);
  }
  const { disabled, subject } = parsed.output;
  if (disabled !== undefined && (subject === undefined || subject.upTo !== undefined)) {
    return err(["disabled goes with a subject alone, without upTo"]);
  }
  const enables = disabled === false ? subject : undefined;
  return ok(defined<RevocationOrder>({ selector, enables, dryRun, page: defined({ limit, afterJti }) }));
}

const READERS: { [Name in SelectorName]: (order: Order, us: string) => EndingSelector | undefined } = {
  token: ({ token }) => (token === undefined ? undefined : { by: "token", jti: token }),
  subject: ({ subject, disabled }) => subject && subjectOf(subject, disabled),
  actor: ({ actor }) => (actor === undefined ? undefined : { by: "actor", spiffeId: actor }),
  client: ({ client }) => (client === undefined ? undefined : { by: "client", clientId: client }),
  trustDomain: ({ trustDomain }) =>
    trustDomain === undefined ? undefined : { by: "trust_domain", name: trustDomain },
  issuer: ({ issuer }) => (issuer === undefined ? undefined : { by: "issuer", issuer }),
  rule: ({ rule }) => (rule === undefined ? undefined : { by: "rule", id: rule }),
  consent: ({ consent }) => (consent === undefined ? undefined : { by: "consent", id: consent }),
  grant: ({ grant }) => (grant === undefined ? undefined : { by: "grant", id: grant }),
  job: ({ job }, us) => (job === undefined ? undefined : { by: "job", iss: us, id: job }),
  everyGrant: ({ everyGrant }) => everyGrant && { by: "every_grant" },
  everything: ({ everything }) => everything && everythingUpTo(everything.upTo),
};

const msOf = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : seconds * 1000;

const everythingUpTo = (upTo: number | undefined): EndingSelector =>
  defined<EndingSelector>({ by: "everything", upToMs: msOf(upTo) });

const subjectOf = (
  { iss, sub, upTo }: NonNullable<Order["subject"]>,
  disabled: boolean | undefined,
): EndingSelector =>
  defined<EndingSelector>({ by: "subject", iss, sub, upToMs: msOf(upTo), disabled: disabled || undefined });
