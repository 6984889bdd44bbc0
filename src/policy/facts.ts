/**
 * What a decision read, in its event: the members of the request that the other members of the event do not say already
 * (REPL-D-1), and the request again, made of both. What the trail says elsewhere is looked up: consents by id and version,
 * jobs by id.
 */
import type { AuditEvent, DecisionFacts, SubjectFacts } from "../audit/event.ts";
import { FACTS_CONSENTS_MAX } from "../limits/audit.ts";
import { MODES } from "../modes.ts";
import { defined, err, ok, type Result, sparse } from "../result.ts";
import { parseScope } from "../spec/rfc6749.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { REQUESTED_TYPES, type RequestedType } from "../spec/rfc8693.ts";
import type { Detail } from "../spec/rfc9396.ts";
import type { AccessRequest, Consent, JobBounds, JobInForce, ProvenKeys, Subject } from "./access.ts";
import type { NoTexts, SubjectClaims, WantedClaims } from "./claims.ts";
import type { AskedRequest } from "./decision.ts";
import { boundsFrom, writtenBounds } from "./jobs.ts";
import type { PolicySet } from "./rules.ts";

/** The members of an event that say something of the request. */
type Said = Omit<AuditEvent, "facts" | "detail" | "error">;

/** The request as the other members of its event tell it; what they do not tell has its most usual value. */
type Told = {
  workload: string | undefined;
  target: string | undefined;
  requestedType: RequestedType | undefined;
  resources: readonly string[];
  scope: readonly string[] | undefined;
  jkt: string | undefined;
  x5t: string | undefined;
  sub: string;
  subject: (Omit<Subject, "chain" | "mayAct" | "boundTo"> & Pick<AuditEvent, "chain">) | undefined;
};

function tell({ mode, client, subject, requested, granted }: Said, us: string): Told {
  const { brings } = MODES[mode ?? "client_credentials"];
  const type = brings === "subject_token" ? requested?.requested_token_type : undefined;
  const requestedType = type === undefined ? undefined : REQUESTED_TYPES.get(type);
  const { audience = [], resource = [], scope: text } = requested ?? {};
  const isIdJag = requestedType === "id-jag";
  const scope = text === undefined ? undefined : parseScope(text);
  const scopes = scope?.ok ? scope.value : undefined;
  // What a partner is given names the subject as the partner does.
  const named = granted?.token_type === "N_A" ? undefined : granted?.sub;
  return {
    workload: client?.workload,
    target: audience[0] ?? (isIdJag ? undefined : resource[0]),
    requestedType,
    resources: isIdJag ? resource : NONE,
    scope: scopes,
    jkt: client?.jkt,
    x5t: client?.x5t,
    sub: named ?? subject?.sub ?? client?.client_id ?? "",
    subject: brings === "nothing" || subject === undefined ? undefined : tellSubject(subject, scopes, us),
  };
}

const NONE: readonly string[] = [];

function tellSubject(
  { iss, sub, token }: NonNullable<AuditEvent["subject"]>,
  asked: readonly string[] | undefined,
  us: string,
): NonNullable<Told["subject"]> {
  const { type, aud = NONE, exp = 0, scope } = token;
  return {
    tokenType: type as Subject["tokenType"],
    origin: { iss, sub },
    audiences: aud,
    scopes: scope?.split(" ") ?? asked ?? NONE,
    expiresAtSeconds: Math.floor(exp),
    issuer: type === "access_token" ? us : iss,
  };
}

// --- into the event ---------------------------------------------------------------------------------------------

const isSameList = (one: readonly string[], other: readonly string[]): boolean =>
  one === other || (one.length === other.length && one.every((name, index) => name === other[index]));

/** The value where it is not the one that is told; null says that there is none. */
const other = (value: string | undefined, told: string | undefined): string | null | undefined =>
  value === told ? undefined : (value ?? null);

const otherScope = (
  value: readonly string[] | undefined,
  told: readonly string[] | undefined,
): string | null | undefined => {
  if (value === undefined || told === undefined)
    return value === told ? undefined : (value?.join(" ") ?? null);
  return isSameList(value, told) ? undefined : value.join(" ");
};

/** `describe` puts digests in place of values that are private (RAR-D-13). */
export function factsOf(
  asked: AskedRequest,
  event: Said,
  us: string,
  describe: (details: readonly Detail[]) => readonly Detail[],
  digest: (text: string) => string,
): DecisionFacts {
  const told = tell(event, us);
  const certificate = asked.keys === "assumed" ? undefined : asked.keys?.certificate;
  const { bindsBy = NONE, resources = NONE, consents, details, job, proposes } = asked;
  return sparse<DecisionFacts>({
    bind: bindsBy.length > 0 ? bindsBy.join(" ") : undefined,
    cert: certificate && describeCertificate(certificate, told.x5t),
    class: asked.registrationClass,
    consents: consents.length > 0 ? describeConsents(consents, event.policy?.consent) : undefined,
    details: details && describe(details),
    ends: asked.endsAtSeconds,
    for: asked.forWorkload,
    job_ends: job?.iss === undefined ? undefined : job.bounds.notAfterSeconds,
    job_id: other(job?.id, event.job?.id),
    now: asked.nowSeconds,
    proposes: proposes && describeBounds(proposes, describe),
    pushed: asked.pushed,
    resources: isSameList(resources, told.resources) ? undefined : resources,
    scope: otherScope(asked.scope, told.scope),
    scopes: clientScopesOf(asked),
    sub: asked.sub === told.sub ? undefined : asked.sub,
    subject: subjectOf(asked.subject, told.subject, event, describe, digest),
    target: other(asked.target, told.target),
    type: other(asked.requestedType, told.requestedType),
    types: typesOf(asked),
    workload: other(asked.workload, told.workload),
  });
}

const describeCertificate = (
  { x5t, notAfterSeconds }: NonNullable<ProvenKeys["certificate"]>,
  told: string | undefined,
): NonNullable<DecisionFacts["cert"]> => (x5t === told ? [notAfterSeconds] : [notAfterSeconds, x5t]);

/** The one that was used is told by its version alone; too many are not told at all, so that no event has any length. */
const describeConsents = (
  consents: readonly Consent[],
  used: string | undefined,
): NonNullable<DecisionFacts["consents"]> =>
  consents.length > FACTS_CONSENTS_MAX
    ? "many"
    : consents.map(({ id, version }) => (id === used ? version : [id, version]));

const describeBounds = (
  bounds: JobBounds,
  describe: (details: readonly Detail[]) => readonly Detail[],
): JsonObject =>
  writtenBounds(defined<JobBounds>({ ...bounds, details: bounds.details && describe(bounds.details) }));

/**
 * The scopes of the client, where they may take something from the request: of those that it asks about, the ones that
 * are left; all of them where only the policy knows what is asked about.
 */
function clientScopesOf({ clientScopes, scope, subject, details }: AskedRequest): string | undefined {
  if (clientScopes === undefined) return undefined;
  const about = scope ?? (details === undefined ? subject?.scopes : undefined);
  if (about === undefined) return clientScopes.join(" ");
  const left = about.filter((one) => clientScopes.includes(one));
  return left.length === about.length ? undefined : left.join(" ");
}

/** The types that the client is registered for, where one of the request is not among them. */
const typesOf = ({ clientDetails, details = [] }: AskedRequest): readonly string[] | undefined =>
  details.every(({ type }) => clientDetails?.includes(type) ?? true) ? undefined : clientDetails;

function subjectOf(
  subject: Subject | undefined,
  told: Told["subject"],
  { chain, may_act, subject: presented }: Said,
  describe: (details: readonly Detail[]) => readonly Detail[],
  digest: (text: string) => string,
): DecisionFacts["subject"] {
  if (subject === undefined) return told === undefined ? undefined : null;
  const { origin, issuer, signIn = {} } = subject;
  const isOrigin = origin.iss === told?.origin.iss && origin.sub === told.origin.sub;
  const facts = defined<NonNullable<DecisionFacts["subject"]>>({
    acr: signIn.acr,
    aud: told && isSameList(subject.audiences, told.audiences) ? undefined : subject.audiences,
    chain: isSameJson(subject.chain, chain ?? []) ? undefined : subject.chain,
    claims: typeof subject.claims === "object" ? describeClaims(subject.claims, digest) : undefined,
    cnf: isSameJson(subject.boundTo, presented?.token.cnf) ? undefined : (subject.boundTo ?? null),
    details: subject.details && describe(subject.details),
    exp: subject.expiresAtSeconds === told?.expiresAtSeconds ? undefined : subject.expiresAtSeconds,
    issuer: issuer === told?.issuer ? undefined : issuer,
    may_act: isSameJson(subject.mayAct, may_act) ? undefined : (subject.mayAct ?? null),
    origin: isOrigin ? undefined : { iss: origin.iss, sub: origin.sub },
    scope: otherScope(subject.scopes, told?.scopes) ?? undefined,
    replaced: subject.replaced,
    since: signIn.authTimeSeconds,
    type: subject.tokenType === told?.tokenType ? undefined : subject.tokenType,
  });
  for (const _ in facts) return facts;
  return told === undefined ? facts : undefined;
}

/** PCL-D-7: the trail has no value of a claim. */
const describeClaims = (
  { atSeconds: at, untilSeconds: until, values }: SubjectClaims,
  digest: (text: string) => string,
): NonNullable<SubjectFacts["claims"]> => ({
  at,
  until,
  said: Object.fromEntries(
    Object.entries(values).map(([name, said]) => [name, typeof said === "string" ? said : said.map(digest)]),
  ),
});

const isSameJson = (one: unknown, other: unknown): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other);

// --- and back ---------------------------------------------------------------------------------------------------

/** What the rest of the trail says of a request. */
export type LookUps = {
  consent(id: string, version: number): Consent | undefined;
  /** The bounds of a job of ours. */
  job(id: string): JobBounds | undefined;
  /** How the trail names the value of a claim. */
  digest(text: string): string;
};

/** Why an event cannot be decided again. */
export type Undecided = "consents_too_many" | "consent_unknown" | "job_unknown" | "no_request";

const given = <T>(fact: T | null | undefined, told: T | undefined): T | undefined =>
  fact === undefined ? told : (fact ?? undefined);

const scopeOf = (fact: string | null | undefined, told: readonly string[] | undefined) =>
  fact === undefined ? told : fact === null ? undefined : fact === "" ? NONE : fact.split(" ");

/** The request that was decided, as far as a decision reads it. */
export function askedOf(
  event: Said & { facts: DecisionFacts },
  us: string,
  trail: LookUps,
  texts: PolicySet["claims"],
): Result<AskedRequest, Undecided> {
  const { facts, mode, client, policy } = event;
  if (mode === undefined || client === undefined) return err("no_request");
  const told = tell(event, us);
  const consents = consentsOf(facts.consents ?? [], policy?.consent, trail);
  if (!consents.ok) return consents;
  const job = jobOf(event, trail);
  if (!job.ok) return job;
  const { cert, proposes } = facts;
  const keys = sparse<ProvenKeys>({
    jkt: told.jkt,
    certificate: cert && { x5t: cert[1] ?? told.x5t ?? "", notAfterSeconds: cert[0] },
  });
  return ok(
    defined<AskedRequest>({
      mode,
      clientId: client.client_id,
      workload: given(facts.workload, told.workload),
      registrationClass: facts.class,
      clientScopes: scopeOf(facts.scopes, undefined),
      clientDetails: facts.types,
      subject: subjectFrom(event, told.subject, us, (claims, iss) =>
        claimsFrom(claims, texts.get(iss), trail),
      ),
      target: given(facts.target, told.target),
      requestedType: given(facts.type as RequestedType | null | undefined, told.requestedType),
      resources: facts.resources ?? told.resources,
      scope: scopeOf(facts.scope, told.scope),
      job: job.value,
      details: facts.details,
      keys,
      bindsBy: facts.bind?.split(" ") as AccessRequest["bindsBy"],
      pushed: facts.pushed,
      forWorkload: facts.for,
      endsAtSeconds: facts.ends,
      consents: consents.value,
      nowSeconds: facts.now,
      sub: facts.sub ?? told.sub,
      proposes: proposes && boundsFrom(proposes as Parameters<typeof boundsFrom>[0], facts.now),
    }),
  );
}

/** REPL-D-5: a consent that the trail does not tell is not guessed. */
function consentsOf(
  facts: NonNullable<DecisionFacts["consents"]>,
  used: string | undefined,
  trail: LookUps,
): Result<readonly Consent[], Undecided> {
  if (facts === "many") return err("consents_too_many");
  const found: Consent[] = [];
  for (const one of facts) {
    const [id, version] = typeof one === "number" ? [used ?? "", one] : one;
    const consent = trail.consent(id, version);
    if (consent === undefined) return err("consent_unknown");
    found.push(consent);
  }
  return ok(found);
}

function jobOf(
  { facts, job }: Said & { facts: DecisionFacts },
  trail: LookUps,
): Result<JobInForce | undefined, Undecided> {
  const id = given(facts.job_id, job?.id);
  if (id === undefined) return ok(undefined);
  const { job_ends: notAfterSeconds } = facts;
  if (notAfterSeconds !== undefined) {
    return ok(defined<JobInForce>({ id, iss: job?.iss, bounds: { notAfterSeconds } }));
  }
  const bounds = trail.job(id);
  return bounds === undefined ? err("job_unknown") : ok({ id, bounds });
}

function subjectFrom(
  { chain, may_act, subject, facts }: Said & { facts: DecisionFacts },
  told: Told["subject"],
  us: string,
  claimsOf: (claims: NonNullable<SubjectFacts["claims"]>, iss: string) => SubjectClaims,
): Subject | undefined {
  const { subject: fact } = facts;
  if (fact === null || (fact === undefined && told === undefined)) return undefined;
  const { acr, since, claims, ...differs } = fact ?? {};
  const origin = differs.origin ?? told?.origin ?? { iss: "", sub: "" };
  const signIn = defined<NonNullable<Subject["signIn"]>>({ acr, authTimeSeconds: since });
  return defined<Subject>({
    tokenType: (differs.type as Subject["tokenType"] | undefined) ?? told?.tokenType ?? "jwt",
    origin,
    audiences: differs.aud ?? told?.audiences ?? NONE,
    scopes: scopeOf(differs.scope, told?.scopes) ?? NONE,
    details: differs.details,
    expiresAtSeconds: differs.exp ?? told?.expiresAtSeconds ?? 0,
    chain: differs.chain ?? chain ?? [],
    mayAct: given(differs.may_act, may_act),
    issuer: differs.issuer ?? told?.issuer ?? us,
    boundTo: given(differs.cnf, subject?.token.cnf),
    replaced: differs.replaced,
    signIn,
    claims: claims && claimsOf(claims, origin.iss),
  });
}

/** REPL-D-5: of a value that no rule named then the trail knows nothing, so that it is not there for a rule that names it now. */
function claimsFrom(
  { at: atSeconds, until: untilSeconds, said }: NonNullable<SubjectFacts["claims"]>,
  wanted: WantedClaims | undefined,
  { digest }: LookUps,
): SubjectClaims {
  const textsAt = (name: string, digests: readonly string[]): readonly string[] =>
    [...(wanted?.texts.get(name) ?? [])].filter((text) => digests.includes(digest(text)));
  const values = Object.entries(said).map(([name, one]) => [
    name,
    typeof one === "string" ? (one as NoTexts) : textsAt(name, one),
  ]);
  return { atSeconds, untilSeconds, values: Object.fromEntries(values) };
}
