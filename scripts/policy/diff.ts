/**
 * What a change of the policy would newly allow and newly deny. Rules only allow, so whatever is allowed is allowed
 * by a rule: each rule that is not the same on both sides is asked about at its own edges (who, for whom, by which
 * token, at which target, each scope alone), and both sides answer. Prefixes and "any subject" are asked by a sample
 * and by every name within them that either side has.
 */
import { isDeepStrictEqual } from "node:util";
import type { Explanation } from "../../src/flows/explain.ts";
import type { Question } from "../../src/policy/question.ts";
import type { Mode, Rule } from "../../src/policy/rules.ts";
import { SELF } from "../../src/policy/rules.ts";
import type { Client, Settings } from "../../src/ports.ts";
import type { JsonObject } from "../../src/spec/json.ts";
import { ACT_HOPS_MAX } from "../../src/spec/limits.ts";
import { buildAct } from "../../src/spec/rfc8693.ts";
import { matchesPattern } from "../../src/spec/spiffe/id.ts";
import type { Asked } from "./answer.ts";
import { answer, rulesOf } from "./answer.ts";
import type { Vector } from "./vectors.ts";

/** More would take minutes, and nobody would read them. */
const QUESTIONS_MAX = 50_000;

export type Change = "allowed" | "denied" | "lifetime";

/** What was asked, in words; `note` is how long, or why not. */
export type Facts = {
  mode: Mode;
  rule: string;
  who: string;
  subject: string;
  token: string;
  earlier: string;
  target: string;
  scope: string;
  note: string;
};

export type Difference = { change: Change; facts: Facts };

export type Comparison = {
  asked: number;
  /** Whether there would have been more to ask. */
  cut: boolean;
  differences: readonly Difference[];
  vectors: readonly { name: string; before: Explanation; after: Explanation }[];
};

type Probe = { asked: Asked; facts: Omit<Facts, "rule" | "note"> };

export async function compare(
  before: Settings,
  after: Settings,
  vectors: readonly Vector[],
  questionsMax = QUESTIONS_MAX,
): Promise<Comparison> {
  const probes = collectProbes(before, after, questionsMax + 1);
  const cut = probes.length > questionsMax;
  const differences: Difference[] = [];
  for (const { asked, facts } of probes.slice(0, questionsMax)) {
    const [old, next] = [await answer(before, asked), await answer(after, asked)];
    const found = judge(old, next);
    if (found !== undefined) {
      const { change, rule, note } = found;
      differences.push({ change, facts: { ...facts, rule, note } });
    }
  }
  const changed: { name: string; before: Explanation; after: Explanation }[] = [];
  for (const { name, asked } of vectors) {
    const [old, next] = [await answer(before, asked), await answer(after, asked)];
    const same = isDeepStrictEqual(old.issued, next.issued) && old.failure?.reason === next.failure?.reason;
    if (!same) changed.push({ name, before: old, after: next });
  }
  return { asked: Math.min(probes.length, questionsMax), cut, differences, vectors: changed };
}

function judge(
  old: Explanation,
  next: Explanation,
): { change: Change; rule: string; note: string } | undefined {
  if (old.issued === undefined) {
    return next.issued && { change: "allowed", rule: next.issued.rule, note: "" };
  }
  if (next.issued === undefined) {
    return { change: "denied", rule: old.issued.rule, note: next.failure?.reason ?? "no_rule" };
  }
  const [was, is] = [old, next].map(({ issued }) => Number(issued?.claims.exp) - Number(issued?.claims.iat));
  return was === is ? undefined : { change: "lifetime", rule: next.issued.rule, note: `${was} s → ${is} s` };
}

// --- questions ----------------------------------------------------------------------------------------------------

function collectProbes(before: Settings, after: Settings, max: number): readonly Probe[] {
  const sameElse = isDeepStrictEqual(withoutRules(before), withoutRules(after));
  const [old, next] = [rulesOf(before), rulesOf(after)];
  const names = namesIn([...old, ...next], [...before.clients.values(), ...after.clients.values()]);
  const found = new Map<string, Probe>();
  const sides = [
    { settings: after, rules: next, others: old },
    { settings: before, rules: old, others: next },
  ];
  for (const { settings, rules, others } of sides) {
    const byId = new Map(others.map((rule) => [rule.id, rule]));
    for (const rule of rules) {
      // What such a rule allows, it allows on both sides.
      if (sameElse && isDeepStrictEqual(byId.get(rule.id), rule)) continue;
      for (const probe of probesOf(settings, rule, names)) {
        found.set(JSON.stringify(probe.asked), probe);
        if (found.size === max) return [...found.values()];
      }
    }
  }
  return [...found.values()];
}

function withoutRules({ policy, ...settings }: Settings): object {
  return { ...settings, targets: policy.targets };
}

type Names = {
  /** Workloads and prefixes. */
  actors: readonly string[];
  clients: readonly string[];
  subs: readonly { iss: string; sub: string }[];
};

function namesIn(rules: readonly Rule[], clients: readonly Client[]): Names {
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
    clients: unique(rules.flatMap((rule) => (rule.allow === "delegation" ? [] : (rule.clients ?? [])))),
    subs,
  };
}

function* probesOf(settings: Settings, rule: Rule, names: Names): Generator<Probe> {
  const targets = new Set(rule.targets.flatMap((name) => settings.policy.targets.get(name) ?? []));
  for (const who of whosOf(settings, rule, names)) {
    for (const token of tokensOf(settings, rule, who, names)) {
      for (const {
        names: [target = ""],
        scopes,
      } of targets) {
        for (const scope of rule.scopes.filter((one) => scopes.includes(one))) {
          yield {
            asked: ask(rule, who, token, target, scope),
            facts: {
              ...{ mode: rule.allow, who: who.label, target, scope },
              ...{ subject: token?.subject ?? "", token: token?.label ?? "", earlier: token?.earlier ?? "" },
            },
          };
        }
      }
    }
  }
}

function ask(rule: Rule, who: Who, token: Token | undefined, target: string, scope: string): Asked {
  const { client, workload } = who;
  const onRecord = rule.allow !== "client_credentials" && rule.consent === "record";
  const question: Question = {
    ...{ client, target, scope },
    ...(workload !== undefined && { workload }),
    ...(token !== undefined && {
      origin: token.origin,
      subjectClaims: { ...token.claims, scope: [scope, ...token.scopes].join(" ") },
      ...(rule.allow === "delegation" && { actor: workload ?? client }),
    }),
  };
  return { question, consents: onRecord ? [{ targets: [target], scopes: [scope] }] : [] };
}

// --- who ----------------------------------------------------------------------------------------------------------

type Who = { label: string; client: string; workload?: string };

function whosOf(settings: Settings, rule: Rule, names: Names): readonly Who[] {
  const workloads = rule.actors?.flatMap((pattern) => samplesOf(pattern, names.actors));
  const clients = rule.allow === "delegation" ? undefined : rule.clients;
  if (clients === undefined) {
    return (workloads ?? []).flatMap(({ label, id }) => {
      const having = [...settings.clients.values()].filter((client) => canProve(client, id));
      const by = having.map(({ clientId }) => ({ label: `${clientId} as ${label}`, client: clientId }));
      return [{ label, client: id }, ...by].map((who) => ({ ...who, workload: id }));
    });
  }
  return clients
    .flatMap((pattern) => samplesOf(pattern, names.clients))
    .flatMap(({ label, id }): readonly Who[] => {
      const client = settings.clients.get(id);
      const own = client === undefined ? [] : samplesOf(workloadOf(client), names.actors);
      const proven = workloads?.filter((one) => client === undefined || canProve(client, one.id)) ?? own;
      if (proven.length === 0) return [{ label, client: id }];
      return proven.map((one) => ({ label: `${label} as ${one.label}`, client: id, workload: one.id }));
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
  origin: { iss: string; sub: string };
  claims: JsonObject;
  scopes: readonly string[];
};

type Permit = { label: string; audiences: readonly string[]; scopes: readonly string[] };

function* tokensOf(settings: Settings, rule: Rule, who: Who, names: Names): Generator<Token | undefined> {
  if (rule.allow === "client_credentials") return yield undefined;
  const mayAct = { may_act: { sub: who.workload ?? who.client, iss: settings.issuer } };
  const consented = rule.consent === "may_act" ? mayAct : {};
  const asked = { record: ", with consent on record", may_act: ", named in may_act", implied: ", not asked" };
  for (const { label: whom, ...origin } of subjectsOf(settings, rule, names)) {
    const subject = `${whom}${asked[rule.consent]}`;
    for (const { label, audiences, scopes } of permitsOf(settings, rule, who)) {
      const common = { subject, scopes };
      const aud = [...audiences];
      const foreign = settings.trustedIssuers.get(origin.iss);
      if (foreign !== undefined) {
        const claims = {
          ...origin,
          ...consented,
          aud: [...new Set([...foreign.audiences.slice(0, 1), ...aud])],
        };
        yield { ...common, origin, claims, label: `of its issuer, ${label}`, earlier: "0" };
      }
      // One of ours as well, and at the longest chain that the rule takes.
      const longest = rule.allow === "delegation" ? (rule.maxChainDepth ?? ACT_HOPS_MAX) - 1 : 0;
      for (const hops of new Set([0, longest])) {
        const act = buildAct(earlier(hops, settings.issuer), settings.issuer);
        const claims = {
          ...{ iss: settings.issuer, sub: "any" },
          ...(aud.length > 0 && { aud }),
          ...consented,
          ...(act !== undefined && { act }),
        };
        yield { ...common, origin, claims, label: `of this server, ${label}`, earlier: `${hops}` };
      }
    }
  }
}

const earlier = (hops: number, iss: string) =>
  Array.from({ length: hops }, (_, index) => ({ iss, sub: `spiffe://earlier.example/${index + 1}` }));

type ExchangeRule = Exclude<Rule, { allow: "client_credentials" }>;

function subjectsOf({ trustedIssuers }: Settings, { subjects }: ExchangeRule, names: Names) {
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
