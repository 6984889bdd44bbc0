/** What `mandate policy reach` searches (REACH-D-2): the callers and subjects that a configuration admits. */
import { findCaller } from "../../flows/order/question.ts";
import { callerOf } from "../../flows/order/read-order.ts";
import { mapSubject } from "../../flows/order/subject.ts";
import { type Brought, MODES } from "../../modes.ts";
import type { Origin } from "../../policy/access.ts";
import type { Outsiders, ReachCaller, World } from "../../policy/reach-moves.ts";
import { hasSubject, isFor, type PolicySet, type Rule, type RulesOf } from "../../policy/rules.ts";
import type { Partner } from "../../policy/targets.ts";
import { defined } from "../../result.ts";
import type { Settings, SubjectMapping, TrustedIssuer } from "../../settings/settings.ts";
import { isPlatformName, parsePlatformId } from "../../spec/workload-grant.ts";
import { portsOfFile } from "./answer.ts";
import { callersOf, type Names, namesIn, type ProbedCaller, unused } from "./probes.ts";

/** `actor` and `subject` are asked about, so that they are told apart from others; of the subjects there is no other. */
export async function worldOf(
  settings: Settings,
  { actor, subject }: { actor?: string | undefined; subject?: Origin | undefined } = {},
): Promise<World> {
  const policy = withoutDetails(settings.policy);
  const rules = [...new Set([...policy.byWho.values()].flatMap(({ rules }) => rules))];
  const names = namesIn(
    rules,
    [...settings.clients.values()],
    settings.platforms.values(),
    namesElsewhere(settings, rules, actor),
  );
  // REACH-D-2: a caller is never its own subject, so where callers are subjects, one stands for all but itself.
  const areSubjects = rules.some(
    (rule) => hasSubject(rule) && rule.subjects.issuers.includes(settings.issuer),
  );
  const asTwo = areSubjects ? [names, withOthers(names)] : [names];
  const found = new Map<string, Promise<ReachCaller | undefined>>();
  const callers = new Map<Rule, readonly ReachCaller[]>();
  for (const rule of rules) {
    const sampled = asTwo.flatMap((of) => callersOf(settings, rule, of));
    const all = sampled.map((one) => {
      const key = JSON.stringify([
        one.client,
        one.workload,
        one.registrationClass,
        MODES[rule.allow].grantType,
      ]);
      const known = found.get(key) ?? readCaller(settings, rule, one);
      found.set(key, known);
      return known;
    });
    const read = (await Promise.all(all)).flatMap((one) => one ?? []);
    callers.set(rule, [...new Map(read.map((one) => [`${one.clientId} ${one.workload}`, one])).values()]);
  }
  const issuers = [...settings.trustedIssuers.values()];
  const outsiders = await Promise.all(issuers.map((one) => usersOf(settings, one, rules, subject)));
  const workloads = platformSubjects(settings, rules, names, subject);
  return {
    policy,
    callersOf: callers,
    outsiders: [...outsiders, workloads].filter(({ any, subs }) => any !== undefined || subs.size > 0),
    proofs: settings.takesCertificates ? ["dpop", "certificate"] : ["dpop"],
  };
}

/** The same names, where the first that stands for others below a prefix is taken. */
function withOthers({ actors, clients, subs }: Names): Names {
  const taken = ({ has, below }: Names["actors"]): Names["actors"] => ({
    has: (name) => has(name) || /(?:^c_|\/)any$/.test(name),
    below,
  });
  return { actors: taken(actors), clients: taken(clients), subs };
}

/** REACH-D-3: details only narrow, so nothing is reached with them that is not reached without. */
function withoutDetails(policy: PolicySet): PolicySet {
  const bare = new Map(
    [...policy.rules.values()].map((rule): [Rule, Rule] => {
      if (rule.details === undefined && rule.demands === undefined) return [rule, rule];
      const { details: _, demands: __, ...rest } = rule;
      return [rule, rest as Rule];
    }),
  );
  const all = (rules: readonly Rule[]): readonly Rule[] => rules.map((rule) => bare.get(rule) ?? rule);
  const byWho = new Map(
    [...policy.byWho].map(([who, { rules, byTarget, kinds }]) => {
      const at = byTarget && new Map([...byTarget].map(([name, of]) => [name, all(of)]));
      return [who, defined<RulesOf>({ rules: all(rules), kinds: all(kinds), byTarget: at })];
    }),
  );
  return { ...policy, byWho };
}

/** Everything else by which the policy or the configuration could tell two workloads or clients apart. */
function namesElsewhere(
  { trustDomains, policy }: Settings,
  rules: readonly Rule[],
  actor: string | undefined,
): readonly string[] {
  const targets = [...new Set(policy.targets.values())];
  return [
    ...(actor === undefined ? [] : [actor]),
    ...trustDomains.values().flatMap(({ admit }) => (typeof admit === "string" ? [] : admit)),
    ...targets.flatMap(({ names, owners, partner }) => [
      ...names,
      ...owners,
      ...(partner?.clients.keys() ?? []),
      ...(partner === undefined ? [] : namesAt(partner)),
    ]),
    ...rules.flatMap((rule) => (isFor(rule, "subject_token") ? (rule.subjectToken.audiences ?? []) : [])),
    ...rules.flatMap((rule) => (hasSubject(rule) ? (rule.subjects.subs ?? []) : [])),
  ];
}

/** The caller as the token endpoint would know it, unless it is none, or not for requests of this kind. */
async function readCaller(
  settings: Settings,
  rule: Rule,
  { label, client, workload, registrationClass }: ProbedCaller,
): Promise<ReachCaller | undefined> {
  const question = defined<Parameters<typeof findCaller>[2]>({ client, workload });
  const scenario = defined<Parameters<typeof portsOfFile>[1]>({ question, consents: [], registrationClass });
  const found = await findCaller(portsOfFile(settings, scenario), rule.allow, question);
  if (!found.ok) return undefined;
  const { keys: _, clientDetails: __, endsAtSeconds: ___, ...caller } = callerOf(found.value);
  return defined<ReachCaller>({ ...caller, label });
}

async function usersOf(
  settings: Settings,
  issuer: TrustedIssuer,
  rules: readonly Rule[],
  asked: Origin | undefined,
): Promise<Outsiders> {
  const { issuer: us, signIn, policy } = settings;
  const { issuer: iss, acceptAs, grants, audiences, subjects } = issuer;
  const isProvider = signIn?.providers.values().some((one) => one.issuer === iss) ?? false;
  const brings: readonly Brought[] = [
    ...(acceptAs.length > 0 ? (["subject_token"] as const) : []),
    ...(grants === undefined ? [] : (["grant"] as const)),
    ...(isProvider ? (["code"] as const) : []),
  ];
  const ports = portsOfFile(settings, { question: { client: "" }, consents: [] });
  const here = async (sub: string): Promise<string | undefined> => {
    const mapped = await mapSubject(ports, issuer, sub, { sub });
    return mapped.ok ? mapped.value.sub : undefined;
  };
  const told = asked === undefined ? [...subsIn(rules, iss), ...subsAtPartners(policy, subjects)] : [];
  const named = new Set(asked?.iss === iss ? [asked.sub] : told);
  const subs = new Map<string, string>();
  for (const sub of named) {
    const name = await here(sub);
    if (name !== undefined) subs.set(sub, name);
  }
  const others = subjects.kind === "table" ? [...subjects.table.keys()] : [unused("any", named)];
  let any: string | undefined;
  for (const sub of asked === undefined ? others : []) {
    any ??= named.has(sub) || (await here(sub)) === undefined ? undefined : sub;
  }
  const [tokenType = "jwt"] = acceptAs;
  const [audience = us] = audiences;
  return defined<Outsiders>({ iss, brings, tokenType, audience, any, subs });
}

const subsIn = (rules: readonly Rule[], iss: string): readonly string[] =>
  rules.flatMap((rule) =>
    hasSubject(rule) && rule.subjects.issuers.includes(iss) ? (rule.subjects.subs ?? []) : [],
  );

/** The subjects that the partner has in its table, by their names here. */
const namesAt = ({ subjects }: Partner): readonly string[] =>
  typeof subjects === "object" && "table" in subjects ? [...subjects.table.keys()] : [];

/** The subjects of an issuer that some partner has in its table. */
function subsAtPartners({ targets }: PolicySet, mapping: SubjectMapping): readonly string[] {
  const here = [...new Set(targets.values())].flatMap(({ partner }) => (partner ? namesAt(partner) : []));
  switch (mapping.kind) {
    case "keep":
      return here;
    case "prefix":
      return here.flatMap((one) =>
        one.startsWith(mapping.prefix) ? [one.slice(mapping.prefix.length)] : [],
      );
    case "table":
      return [...mapping.table].flatMap(([sub, name]) => (here.includes(name) ? [sub] : []));
  }
}

/** PLAT-D-15: the workloads of platforms that may be subjects, which are ours. */
function platformSubjects(
  { issuer: iss, platforms }: Settings,
  rules: readonly Rule[],
  names: Names,
  asked: Origin | undefined,
): Outsiders {
  const samples = [...platforms.values()].flatMap(({ name }) => names.actors.below(`platform://${name}/*`));
  const all =
    asked === undefined ? [...subsIn(rules, iss), ...samples] : asked.iss === iss ? [asked.sub] : [];
  const subs = all.filter((one) => {
    const registration = isPlatformName(one)
      ? platforms.get(parsePlatformId(one)?.registration ?? "")
      : undefined;
    return registration?.uses.includes("subject") ?? false;
  });
  return {
    iss,
    brings: ["subject_token"],
    tokenType: "jwt",
    audience: iss,
    subs: new Map(subs.map((sub) => [sub, sub])),
  };
}
