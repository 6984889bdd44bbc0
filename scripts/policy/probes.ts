/** The questions that a rule raises at its own edges, each with what it asks in words. */

import { ACT_HOPS_MAX } from "../../src/limits.ts";
import type { Question } from "../../src/policy/question.ts";
import type { ExchangeRule, Rule, SubjectRule, Target } from "../../src/policy/rules.ts";
import { classesOf, clientsOf, SELF, targetsOf } from "../../src/policy/rules.ts";
import type { Client, Settings } from "../../src/settings/settings.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { buildAct } from "../../src/spec/rfc8693.ts";
import { matchesPattern } from "../../src/spec/spiffe/id.ts";
import type { Asked } from "./answer.ts";

/** What is asked, in words; what does not apply is empty. */
export type Facts = {
  mode: string;
  who: string;
  subject: string;
  token: string;
  earlier: string;
  target: string;
  scope: string;
};

export type Probe = { asked: Asked; facts: Facts };

type Names = {
  /** Workloads and prefixes. */
  actors: readonly string[];
  clients: readonly string[];
  subs: readonly { iss: string; sub: string }[];
};

export function namesIn(rules: readonly Rule[], clients: readonly Client[]): Names {
  const unique = (texts: readonly string[]): readonly string[] => [...new Set(texts)];
  const subs = rules.flatMap((rule) => {
    if (rule.allow === "client_credentials") return [];
    const { issuers, subs = [] } = rule.subjects;
    return issuers.flatMap((iss) => subs.map((sub) => ({ iss, sub })));
  });
  return {
    actors: unique([
      ...rules.flatMap(({ actors = [] }) => actors),
      ...clients.flatMap((one) => workloadOf(one) ?? []),
    ]),
    clients: unique(rules.flatMap((rule) => clientsOf(rule) ?? [])),
    subs,
  };
}

export function* probesOf(settings: Settings, rule: Rule, names: Names): Generator<Probe> {
  for (const who of whosOf(settings, rule, names)) {
    for (const token of tokensOf(settings, rule, who, names)) {
      for (const target of targetsOf(settings.policy, rule)) {
        for (const wish of wishesOf(target)) {
          for (const scope of rule.scopes.filter((one) => target.scopes.includes(one))) {
            yield probe(rule, who, token, target, wish, scope);
          }
        }
      }
    }
  }
}

function probe(
  rule: Rule,
  who: Who,
  token: Token | undefined,
  target: Target,
  wish: Wish,
  scope: string,
): Probe {
  const { client, workload, registrationClass } = who;
  const [name = ""] = target.names;
  const onRecord = rule.allow !== "client_credentials" && rule.consent === "record";
  const question: Question = {
    client,
    target: name,
    scope,
    ...(workload !== undefined && { workload }),
    ...token?.sent({ ...token.claims, scope: [scope, ...token.scopes].join(" ") }),
    ...(rule.allow === "delegation" && { actor: workload ?? client }),
    ...wish.asked,
  };
  return {
    asked: {
      question,
      consents: onRecord ? [{ targets: [name], scopes: [scope] }] : [],
      ...(registrationClass !== undefined && { registrationClass }),
    },
    facts: {
      mode: `${rule.allow}${wish.label}`,
      who: who.label,
      target: name,
      scope,
      subject: token?.subject ?? "",
      token: token?.label ?? "",
      earlier: token?.earlier ?? "",
    },
  };
}

type Wish = { label: string; asked: Pick<Question, "issues" | "resources"> };

/** A partner gets what is asked for, the API that it is for included. */
function wishesOf({ partner }: Target): readonly Wish[] {
  if (partner === undefined) return [{ label: "", asked: {} }];
  const idJags = partner.resources.map(
    (resource): Wish => ({
      label: ` as ID-JAG for ${resource}`,
      asked: { issues: "id-jag", resources: [resource] },
    }),
  );
  return [
    { label: " as JWT grant", asked: {} },
    { label: " as ID-JAG", asked: { issues: "id-jag" } },
    ...idJags,
  ];
}

// --- who ----------------------------------------------------------------------------------------------------------

type Who = { label: string; client: string; workload?: string; registrationClass?: string };

function whosOf(settings: Settings, rule: Rule, names: Names): readonly Who[] {
  const workloads = rule.actors?.flatMap((pattern) => samplesOf(pattern, names.actors));
  const [clients, classes] = [clientsOf(rule), classesOf(rule)];
  if (clients === undefined && classes === undefined) {
    return (workloads ?? []).flatMap(({ label, id }) => {
      const having = [...settings.clients.values()].filter((client) => canProve(client, id));
      const by = having.map(({ clientId }) => ({ label: `${clientId} as ${label}`, client: clientId }));
      return [{ label, client: id }, ...by].map((who) => ({ ...who, workload: id }));
    });
  }
  const named = (clients ?? []).flatMap((pattern) => samplesOf(pattern, names.clients));
  const registered = (classes ?? []).map((registrationClass) => ({
    label: `any client of class ${registrationClass}`,
    registrationClass,
    id: unused("c_any", names.clients),
  }));
  return [...named, ...registered].flatMap(({ label, id, ...of }): readonly Who[] => {
    const client = settings.clients.get(id);
    const own = client === undefined ? [] : samplesOf(workloadOf(client), names.actors);
    const proven = workloads?.filter((one) => client === undefined || canProve(client, one.id)) ?? own;
    if (proven.length === 0) return [{ label, client: id, ...of }];
    return proven.map((one) => ({ label: `${label} as ${one.label}`, client: id, workload: one.id, ...of }));
  });
}

/** Exact, a prefix, or nothing. */
const workloadOf = ({ workload, auth }: Client): string | undefined =>
  workload ?? ("spiffeId" in auth ? auth.spiffeId : undefined);

function canProve(client: Client, workload: string): boolean {
  const pattern = workloadOf(client);
  return pattern !== undefined && matchesPattern(pattern, workload);
}

type Sample = { label: string; id: string };

/** Names that a pattern stands for; the one that nobody names goes by the pattern. */
function samplesOf(pattern: string | undefined, names: readonly string[]): readonly Sample[] {
  if (pattern === undefined) return [];
  const within = names.filter((name) => name !== pattern && matchesPattern(pattern, name));
  return [pattern, ...within].map((name) => ({
    label: name,
    id: name.endsWith("/*") ? unused(`${name.slice(0, -1)}any`, names) : name,
  }));
}

function unused(name: string, taken: readonly string[]): string {
  return taken.includes(name) ? unused(`${name}-other`, taken) : name;
}

// --- by which token -----------------------------------------------------------------------------------------------

type Token = {
  label: string;
  subject: string;
  earlier: string;
  claims: JsonObject;
  scopes: readonly string[];
  /** What of a question it is, once its scope is in the claims. */
  sent: (claims: JsonObject) => Partial<Question>;
};

type Permit = { label: string; audiences: readonly string[]; scopes: readonly string[] };

function* tokensOf(settings: Settings, rule: Rule, who: Who, names: Names): Generator<Token | undefined> {
  if (rule.allow === "client_credentials") return yield undefined;
  const mayAct = { may_act: { sub: who.workload ?? who.client, iss: settings.issuer } };
  const consented = rule.consent === "may_act" ? mayAct : {};
  const asked = { record: ", with consent on record", may_act: ", named in may_act", implied: ", not asked" };
  for (const { label, ...origin } of subjectsOf(settings, rule, names)) {
    const subject = `${label}${asked[rule.consent]}`;
    const tokens =
      rule.allow === "redemption"
        ? grantsOf(settings, rule, who, origin)
        : exchangedOf(settings, rule, who, origin);
    for (const token of tokens) yield { ...token, subject, claims: { ...token.claims, ...consented } };
  }
}

type Bare = Omit<Token, "subject">;
type Origin = { iss: string; sub: string };

/** Subject tokens: of the issuer, as each type that it is trusted for, and one of ours. */
function* exchangedOf(settings: Settings, rule: ExchangeRule, who: Who, origin: Origin): Generator<Bare> {
  const { issuer, trustedIssuers } = settings;
  for (const { label, audiences, scopes } of permitsOf(settings, rule, who)) {
    const foreign = trustedIssuers.get(origin.iss);
    for (const type of foreign?.acceptAs ?? []) {
      // An ID token is for the client that its user signed in at.
      const forUs = [...(foreign?.audiences.slice(0, 1) ?? []), ...(type === "id_token" ? [who.client] : [])];
      yield {
        label: `${type === "id_token" ? "ID token " : ""}of its issuer, ${label}`,
        earlier: "0",
        scopes,
        claims: { ...origin, aud: [...new Set([...forUs, ...audiences])] },
        sent: (subjectClaims) => ({ origin, subjectClaims, subjectTokenType: type }),
      };
    }
    // One of ours as well, and at the longest chain that the rule takes.
    const longest = rule.allow === "delegation" ? (rule.maxChainDepth ?? ACT_HOPS_MAX) - 1 : 0;
    for (const hops of new Set([0, longest])) {
      yield {
        label: `of this server, ${label}`,
        earlier: `${hops}`,
        scopes,
        claims: {
          iss: issuer,
          sub: "any",
          ...(audiences.length > 0 && { aud: [...audiences] }),
          ...after(hops, issuer),
        },
        sent: (subjectClaims) => ({ origin, subjectClaims }),
      };
    }
  }
}

/** Grants of the issuer, of each profile that is agreed with it. */
function* grantsOf(
  { issuer, trustedIssuers }: Settings,
  { maxChainDepth = ACT_HOPS_MAX }: SubjectRule & { allow: "redemption" },
  { client }: Who,
  origin: Origin,
): Generator<Bare> {
  for (const grantProfile of trustedIssuers.get(origin.iss)?.grants?.profiles ?? []) {
    for (const hops of [0, maxChainDepth]) {
      yield {
        label: grantProfile === "id-jag" ? "ID-JAG" : "JWT grant",
        earlier: `${hops}`,
        scopes: [],
        claims: { ...origin, aud: issuer, jti: "any", client_id: client, ...after(hops, origin.iss) },
        sent: (grantClaims) => ({ grantClaims, grantProfile }),
      };
    }
  }
}

/** The claim `act` of so many who acted before. */
function after(hops: number, iss: string): JsonObject {
  const act = buildAct(earlier(hops, iss), iss);
  return act === undefined ? {} : { act };
}

const earlier = (hops: number, iss: string) =>
  Array.from({ length: hops }, (_, index) => ({ iss, sub: `spiffe://earlier.example/${index + 1}` }));

function subjectsOf({ trustedIssuers }: Settings, { subjects }: SubjectRule, names: Names) {
  return subjects.issuers.flatMap((iss) => {
    const named = names.subs.filter((one) => one.iss === iss).map(({ sub }) => sub);
    const label = (sub: string): string => `${sub} of ${iss}`;
    if (subjects.subs !== undefined) return subjects.subs.map((sub) => ({ iss, sub, label: label(sub) }));
    const mapping = trustedIssuers.get(iss)?.subjects;
    const mapped = mapping?.kind === "table" ? [...mapping.table.keys()] : [];
    const other = mapped.find((sub) => !named.includes(sub)) ?? unused("any", named);
    return [
      { iss, sub: other, label: `any subject of ${iss}` },
      ...new Set(named).values().map((sub) => ({ iss, sub, label: label(sub) })),
    ];
  });
}

function permitsOf({ policy }: Settings, { subjectToken }: ExchangeRule, who: Who): readonly Permit[] {
  const { audiences = [], scopes = [] } = subjectToken;
  const workload = who.workload ?? "";
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
