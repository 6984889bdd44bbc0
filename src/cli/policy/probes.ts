/** Derives questions from the values of a rule, each with a description for the output. */
import { MODES } from "../../modes.ts";
import { type ClaimDemands, pointerNames } from "../../policy/claims.ts";
import type { Question } from "../../policy/question.ts";
import {
  classesOf,
  clientsOf,
  consentOf,
  type ExchangeRule,
  hasSubject,
  hopsMaxOf,
  isFor,
  type Rule,
  SELF,
  type SubjectRule,
  type Target,
  targetsOf,
} from "../../policy/rules.ts";
import { defined } from "../../result.ts";
import type { Client, Settings } from "../../settings/settings.ts";
import { isJsonObject, type JsonObject } from "../../spec/rfc8259.ts";
import { buildAct } from "../../spec/rfc8693.ts";
import { matchesPattern, prefixesOver } from "../../spec/spiffe/id.ts";
import { isPlatformName, type PlatformRegistration, platformId } from "../../spec/workload-grant.ts";
import type { Scenario } from "./answer.ts";

/** Describes a question; members that do not apply are empty. */
export type Description = {
  mode: string;
  caller: string;
  subject: string;
  token: string;
  earlier: string;
  target: string;
  scope: string;
};

export type Probe = { scenario: Scenario; facts: Description };

export type Names = {
  /** SPIFFE IDs and prefixes of them. */
  actors: Known;
  clients: Known;
  subs: readonly { iss: string; sub: string }[];
};

/** Names, and those below a prefix, found by an index. */
type Known = { has(name: string): boolean; below(pattern: string): readonly string[] };

function knownOf(names: readonly string[]): Known {
  const all = new Set(names);
  const pairs = [...all].flatMap((name) => prefixesOver(name).map((prefix) => ({ prefix, name })));
  const byPrefix = Map.groupBy(pairs, ({ prefix }) => prefix);
  return {
    has: (name) => all.has(name),
    below: (pattern) => (byPrefix.get(pattern) ?? []).flatMap(({ name }) => (name === pattern ? [] : [name])),
  };
}

/** `further` are names that are no caller's in a rule, and by which the policy tells callers apart all the same. */
export function namesIn(
  rules: readonly Rule[],
  clients: readonly Client[],
  platforms: Iterable<PlatformRegistration>,
  further: readonly string[] = [],
): Names {
  const subs = rules.flatMap((rule) => {
    if (!hasSubject(rule)) return [];
    const { issuers, subs = [] } = rule.subjects;
    return issuers.flatMap((iss) => subs.map((sub) => ({ iss, sub })));
  });
  return {
    actors: knownOf([
      ...further,
      ...rules.flatMap(({ actors = [] }) => actors),
      ...clients.flatMap((one) => workloadOf(one) ?? []),
      ...Array.from(platforms, ({ name, subjects: [first = ""], claims, namedBy }) =>
        platformId(
          name,
          ...(namedBy?.map((pointer) => String(claims.get(pointer)?.[0] ?? "any")) ?? [
            first.replace(/\*$/, "any"),
          ]),
        ),
      ),
    ]),
    clients: knownOf([...further, ...rules.flatMap((rule) => clientsOf(rule) ?? [])]),
    subs,
  };
}

export function* probesOf(settings: Settings, rule: Rule, names: Names): Generator<Probe> {
  for (const caller of callersOf(settings, rule, names)) {
    for (const token of tokensOf(settings, rule, caller, names)) {
      for (const target of targetsOf(settings.policy, rule)) {
        const variants = variantsOf(target).flatMap((one) => withDetails(one, rule, target));
        for (const variant of variants.flatMap((one) => withJob(one, rule))) {
          for (const scope of rule.scopes.filter((one) => target.scopes.includes(one))) {
            yield probe(rule, caller, token, target, variant, scope);
          }
        }
      }
    }
  }
}

function probe(
  rule: Rule,
  caller: ProbedCaller,
  token: Token | undefined,
  target: Target,
  variant: Variant,
  scope: string,
): Probe {
  const { client, workload, registrationClass } = caller;
  const [name = ""] = target.names;
  const { brings, chain } = MODES[rule.allow];
  const held = target.transaction?.purposes.get(scope) ?? [scope];
  const question = defined<Question>({
    client,
    target: name,
    scope,
    workload: brings === "code" ? undefined : workload,
    actor: chain === "grows" ? (workload ?? client) : undefined,
    ...token?.sent({ ...token.claims, scope: [...held, ...token.scopes].join(" ") }),
    ...variant.members,
  });
  return {
    scenario: defined<Scenario>({
      question,
      consents: consentOf(rule) === "record" ? [{ targets: [name], scopes: [scope] }] : [],
      registrationClass,
    }),
    facts: {
      mode: `${rule.allow}${variant.label}`,
      caller: caller.label,
      target: name,
      scope,
      subject: token?.subject ?? "",
      token: token?.label ?? "",
      earlier: token?.earlier ?? "",
    },
  };
}

type Variant = { label: string; members: Pick<Question, "issues" | "resources" | "details" | "job"> };

/** JOB-D-7: a rule that says something of jobs is asked about a request in one, and in none. */
const withJob = (variant: Variant, { jobs }: Rule): readonly Variant[] =>
  jobs === undefined
    ? [variant]
    : [variant, { label: `${variant.label} in a job`, members: { ...variant.members, job: {} } }];

/** The same without details, and with those of the rule that its target declares. */
function withDetails(variant: Variant, { details = [] }: Rule, target: Target): readonly Variant[] {
  const here = details.filter(({ type }) => target.details.has(type));
  if (here.length === 0) return [variant];
  const asked: Variant = {
    label: `${variant.label} with details`,
    members: { ...variant.members, details: here.map((one) => one as unknown as JsonObject) },
  };
  return [variant, asked];
}

/** A partner issues different grants on request: a JWT grant, an ID-JAG, or an ID-JAG for one of its APIs. */
function variantsOf({ partner, transaction }: Target): readonly Variant[] {
  if (transaction !== undefined) return [{ label: "", members: { issues: "txn_token" } }];
  if (partner === undefined) return [{ label: "", members: {} }];
  const idJags = partner.resources.map(
    (resource): Variant => ({
      label: ` as ID-JAG for ${resource}`,
      members: { issues: "id-jag", resources: [resource] },
    }),
  );
  return [
    { label: " as JWT grant", members: {} },
    { label: " as ID-JAG", members: { issues: "id-jag" } },
    ...idJags,
  ];
}

// --- callers ------------------------------------------------------------------------------------------------------

export type ProbedCaller = { label: string; client: string; workload?: string; registrationClass?: string };

export function callersOf(settings: Settings, rule: Rule, names: Names): readonly ProbedCaller[] {
  const workloads = rule.actors?.flatMap((pattern) => samplesOf(pattern, names.actors));
  const [clients, classes] = [clientsOf(rule), classesOf(rule)];
  if (clients === undefined && classes === undefined) {
    return (workloads ?? []).flatMap(({ label, id }) => {
      const having = [...settings.clients.values()].filter((client) => canProve(client, id));
      const by = having.map(({ clientId }) => ({ label: `${clientId} as ${label}`, client: clientId }));
      return [{ label, client: id }, ...by].map((caller) => ({ ...caller, workload: id }));
    });
  }
  const named = (clients ?? []).flatMap((pattern) => samplesOf(pattern, names.clients));
  const registered = (classes ?? []).map((registrationClass) => ({
    label: `any client of class ${registrationClass}`,
    registrationClass,
    id: unused("c_any", names.clients),
  }));
  return [...named, ...registered].flatMap(({ label, id, ...of }): readonly ProbedCaller[] => {
    const client = settings.clients.get(id);
    const own = client === undefined ? [] : samplesOf(workloadOf(client), names.actors);
    const proven = workloads?.filter((one) => client === undefined || canProve(client, one.id)) ?? own;
    if (proven.length === 0) return [{ label, client: id, ...of }];
    return proven.map((one) => ({ label: `${label} as ${one.label}`, client: id, workload: one.id, ...of }));
  });
}

/** The SPIFFE ID or prefix that a client authenticates with or is associated with. */
const workloadOf = ({ workload, auth }: Client): string | undefined =>
  workload ?? ("spiffeId" in auth ? auth.spiffeId : undefined);

function canProve(client: Client, workload: string): boolean {
  // PLAT-D-10: any client may bring the grant of such a workload.
  if (isPlatformName(workload)) return true;
  const pattern = workloadOf(client);
  return pattern !== undefined && matchesPattern(pattern, workload);
}

type Sample = { label: string; id: string };

/** Names that match a pattern; a prefix itself is represented by a name that occurs nowhere, labelled as the prefix. */
function samplesOf(pattern: string | undefined, names: Known): readonly Sample[] {
  if (pattern === undefined) return [];
  return [pattern, ...names.below(pattern)].map((name) => ({
    label: name,
    id: name.endsWith("/*") ? unused(`${name.slice(0, -1)}any`, names) : name,
  }));
}

export function unused(name: string, taken: Pick<Known, "has">): string {
  return taken.has(name) ? unused(`${name}-other`, taken) : name;
}

// --- subject tokens and grants ------------------------------------------------------------------------------------

type Token = {
  label: string;
  subject: string;
  earlier: string;
  claims: JsonObject;
  scopes: readonly string[];
  /** The members of a question that present this token with the given claims. */
  sent: (claims: JsonObject) => Partial<Question>;
};

type TokenProperty = { label: string; audiences: readonly string[]; scopes: readonly string[] };

function* tokensOf(
  settings: Settings,
  rule: Rule,
  caller: ProbedCaller,
  names: Names,
): Generator<Token | undefined> {
  if (!hasSubject(rule)) return yield undefined;
  const mayAct = { may_act: { sub: caller.workload ?? caller.client, iss: settings.issuer } };
  const consented = rule.consent === "may_act" ? mayAct : {};
  const consentLabels = {
    record: ", with consent on record",
    may_act: ", named in may_act",
    implied: ", consent implied",
  };
  const said = claimsSample(rule.subjects.claims);
  const withClaims = said && `, of whom it says ${JSON.stringify(said)}`;
  for (const { label, ...one } of subjectsOf(settings, rule, names)) {
    const origin = said === undefined ? one : { ...one, claims: said };
    const subject = `${label}${withClaims ?? ""}${consentLabels[rule.consent]}`;
    const tokens = isFor(rule, "subject_token")
      ? subjectTokensOf(settings, rule, caller, origin)
      : isFor(rule, "grant")
        ? grantsOf(settings, rule, caller, origin)
        : codesOf(origin);
    for (const token of tokens)
      yield { ...token, subject, claims: { ...said, ...token.claims, ...consented } };
  }
}

/** Claims that meet the demands of a rule. */
function claimsSample(demands: ClaimDemands | undefined): JsonObject | undefined {
  if (demands === undefined) return undefined;
  const sample: JsonObject = {};
  for (const [at, [text = ""]] of Object.entries(demands)) {
    const names = pointerNames(at);
    let object = sample;
    for (const name of names.slice(0, -1)) {
      const below = isJsonObject(object[name]) ? object[name] : {};
      object[name] = below;
      object = below;
    }
    object[names.at(-1) ?? ""] = [text];
  }
  return sample;
}

const named = ({ iss, sub }: Origin): JsonObject => ({ iss, sub });

type Bare = Omit<Token, "subject">;
type Origin = { iss: string; sub: string; claims?: JsonObject };

/** Subject tokens from the issuer, in each type that it is trusted for, and from this server. */
function* subjectTokensOf(
  settings: Settings,
  rule: ExchangeRule,
  caller: ProbedCaller,
  origin: Origin,
): Generator<Bare> {
  const { issuer, trustedIssuers } = settings;
  for (const { label, audiences, scopes } of tokenPropertiesOf(settings, rule, caller)) {
    const foreign = trustedIssuers.get(origin.iss);
    for (const type of foreign?.acceptAs ?? []) {
      // The audience of an ID token is the client at which the user signed in.
      const forUs = [
        ...(foreign?.audiences.slice(0, 1) ?? []),
        ...(type === "id_token" ? [caller.client] : []),
      ];
      yield {
        label: `${type === "id_token" ? "ID token " : ""}from the subject's issuer, ${label}`,
        earlier: "0",
        scopes,
        claims: { ...named(origin), aud: [...new Set([...forUs, ...audiences])] },
        sent: (subjectClaims) => ({ origin, subjectClaims, subjectTokenType: type }),
      };
    }
    // A token from this server is tried too, without a chain and with the longest chain that the rule accepts.
    const { chain } = MODES[rule.allow];
    const longest = chain === "grows" ? hopsMaxOf(rule) - 1 : chain === "kept" ? hopsMaxOf(rule) : 0;
    for (const hops of new Set([0, longest])) {
      yield {
        label: `from this server, ${label}`,
        earlier: `${hops}`,
        scopes,
        claims: defined<JsonObject>({
          iss: issuer,
          sub: "any",
          aud: audiences.length > 0 ? [...audiences] : undefined,
          act: actOf(hops, issuer),
        }),
        sent: (subjectClaims) => ({ origin, subjectClaims }),
      };
    }
  }
}

/** The code of a user who signed in. */
const codesOf = (origin: Origin): readonly Bare[] => [
  { label: "code", earlier: "", scopes: [], claims: {}, sent: () => ({ signedIn: origin }) },
];

/** Grants from the issuer, in each profile that it is trusted for. */
function* grantsOf(
  { issuer, trustedIssuers }: Settings,
  rule: Rule,
  { client }: ProbedCaller,
  origin: Origin,
): Generator<Bare> {
  for (const grantProfile of trustedIssuers.get(origin.iss)?.grants?.profiles ?? []) {
    for (const hops of [0, hopsMaxOf(rule)]) {
      yield {
        label: grantProfile === "id-jag" ? "ID-JAG" : "JWT grant",
        earlier: `${hops}`,
        scopes: [],
        claims: defined<JsonObject>({
          ...named(origin),
          aud: issuer,
          jti: "any",
          client_id: client,
          act: actOf(hops, origin.iss),
        }),
        sent: (grantClaims) => ({ grantClaims, grantProfile }),
      };
    }
  }
}

/** The claim `act` of a token with this number of earlier actors. */
function actOf(hops: number, iss: string): JsonObject | undefined {
  const chain = Array.from({ length: hops }, (_, index) => ({
    iss,
    sub: `spiffe://earlier.example/${index + 1}`,
  }));
  return buildAct(chain, iss);
}

function subjectsOf({ trustedIssuers }: Settings, { subjects }: SubjectRule, names: Names) {
  return subjects.issuers.flatMap((iss) => {
    const named = names.subs.filter((one) => one.iss === iss).map(({ sub }) => sub);
    const label = (sub: string): string => `${sub} of ${iss}`;
    if (subjects.subs !== undefined) return subjects.subs.map((sub) => ({ iss, sub, label: label(sub) }));
    const mapping = trustedIssuers.get(iss)?.subjects;
    const mapped = mapping?.kind === "table" ? [...mapping.table.keys()] : [];
    const other = mapped.find((sub) => !named.includes(sub)) ?? unused("any", new Set(named));
    return [
      { iss, sub: other, label: `any subject of ${iss}` },
      ...new Set(named).values().map((sub) => ({ iss, sub, label: label(sub) })),
    ];
  });
}

function tokenPropertiesOf(
  { policy }: Settings,
  { subjectToken }: ExchangeRule,
  caller: ProbedCaller,
): readonly TokenProperty[] {
  const { audiences = [], scopes = [] } = subjectToken;
  const workload = caller.workload ?? "";
  const owned = [...new Set(policy.targets.values())].filter(({ owners }) =>
    owners.some((owner) => matchesPattern(owner, workload)),
  );
  const accepted = audiences.flatMap((name) =>
    name === SELF ? owned.map(({ names: [first = ""] }) => first) : [name],
  );
  return [
    ...[...new Set(accepted)].map((name) => ({ label: `for ${name}`, audiences: [name], scopes: [] })),
    ...scopes.map((scope) => ({ label: `with scope ${scope}`, audiences: [], scopes: [scope] })),
  ];
}
