/**
 * Small random configurations, and what can be reached in each by brute force: named callers and users, each request at
 * each target with each scope, until nothing new comes. No caller or user stands for another, no token covers another.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { askReach, showReach } from "../../src/cli/policy/reach.ts";
import { worldOf } from "../../src/cli/policy/world.ts";
import { loadSettings } from "../../src/config/config.ts";
import { MODE_NAMES, MODES, type Mode } from "../../src/modes.ts";
import type { AccessRequest, Origin, Subject } from "../../src/policy/access.ts";
import { decide } from "../../src/policy/decide.ts";
import { unmet } from "../../src/policy/judge.ts";
import { searchReach } from "../../src/policy/reach.ts";
import type { Settings } from "../../src/settings/settings.ts";
import { type Prng, prng } from "./prng.ts";
import { checkCertificate } from "./reach-check.ts";
import type { Certificate, CheckedConfig } from "./reach-types.ts";

const US = "https://as.example";
const IDP = "https://idp.example";
const STAFF = "https://staff.example";
const ABROAD = "https://as.abroad.example";
const PARTNER = "https://as.partner.example";
const PLANNER = "spiffe://td.example/agents/planner";
const BOOKING = "spiffe://td.example/agents/booking";
const ACTORS = [PLANNER, BOOKING, "report"];
const SCOPES = ["read", "write"];
const TARGETS = ["desk", "api", "vault", PARTNER];
/** Of the users one is named by rules now and then, one has no name at the partner. */
const USERS: readonly Origin[] = [
  { iss: IDP, sub: "alice" },
  { iss: IDP, sub: "bob" },
  { iss: STAFF, sub: "7" },
  { iss: ABROAD, sub: "zoe" },
];
const FAR = Number.MAX_SAFE_INTEGER;

const some = <T>(random: Prng, all: readonly T[], least = 1): T[] => {
  const found = all.filter(() => random.below(3) === 0);
  return found.length >= least ? found : [random.pick(all)];
};
const now = <T extends object>(random: Prng, members: T, oneIn = 3): Partial<T> =>
  random.below(oneIn) === 0 ? members : {};

function randomRule(random: Prng, index: number) {
  const common = { id: `r${index}`, scopes: some(random, SCOPES) };
  const at = (names: readonly string[]) => ({ targets: some(random, names) });
  const jobs = now(random, { jobs: random.pick(["required", "never"]) });
  const actors = {
    actors: some(random, [PLANNER, BOOKING, "spiffe://td.example/crew/*", "spiffe://td.example/agents/*"]),
  };
  const consent = random.pick([
    { consent: "record" },
    { consent: "may_act" },
    { consent: "implied", acknowledge: "subjects-not-asked" },
  ]);
  const subjects = (issuers: readonly string[]) => ({
    subjects: {
      issuers: some(random, issuers),
      ...now(random, { subs: some(random, ["alice", "7", "report", PLANNER]) }),
    },
  });
  const subjectToken = {
    subjectToken: random.pick([
      { audiences: some(random, [US, "self", "desk", "the-desk", "api"]) },
      { audiences: ["self"] },
      { scopes: some(random, SCOPES) },
    ]),
  };
  const depth = now(random, { maxChainDepth: 1 + random.below(2) });
  const bound = { ...now(random, { boundSubject: "audience" }), ...now(random, { unbound: true }) };
  const servers = TARGETS.slice(0, 3);
  switch (random.below(8)) {
    case 0:
      return {
        ...common,
        ...jobs,
        allow: "client_credentials",
        ...random.pick([actors, { clients: ["report"] }]),
        ...at(servers),
      };
    case 1:
      return {
        ...common,
        allow: "authorization_code",
        clients: ["report"],
        ...subjects([IDP]),
        ...at(["desk", "api"]),
      };
    case 2:
      return {
        ...common,
        ...jobs,
        allow: "redemption",
        clients: ["report"],
        ...subjects([ABROAD]),
        ...consent,
        ...depth,
        ...at(servers),
      };
    case 3: {
      const who = random.pick([actors, { clients: ["report"] }]);
      return {
        ...common,
        ...jobs,
        allow: "impersonation",
        ...who,
        ...subjects([IDP, STAFF, US, ABROAD]),
        ...subjectToken,
        ...consent,
        ...bound,
        ...at(servers),
      };
    }
    case 4:
      return {
        ...common,
        ...jobs,
        ...now(random, { acknowledgeJob: "job-ends-here" }),
        allow: "delegation",
        issues: "grant",
        ...actors,
        ...subjects([IDP, STAFF, US]),
        ...subjectToken,
        ...consent,
        ...depth,
        targets: [PARTNER],
      };
    default:
      return {
        ...common,
        ...jobs,
        allow: "delegation",
        ...actors,
        ...subjects([IDP, STAFF, US, ABROAD]),
        ...subjectToken,
        ...consent,
        ...depth,
        ...bound,
        ...at(servers),
      };
  }
}

/** A configuration that is accepted, of which no file is read. */
function randomConfig(random: Prng, file: string): { config: object; settings: Settings } {
  for (;;) {
    const config = configOf(random);
    writeFileSync(file, JSON.stringify(config));
    const loaded = loadSettings(file);
    if (loaded.ok) return { config, settings: loaded.value.settings };
  }
}

function configOf(random: Prng): object {
  const keys = (issuer: string) => ({ keys: { url: `${issuer}/jwks` } });
  const binding = () => now(random, { binding: random.pick(["dpop", "certificate", "any"]) }, 5);
  return {
    version: 1,
    issuer: US,
    listen: { host: "0.0.0.0", port: 8443, tls: { key: { file: "no-key" }, cert: { file: "no-cert" } } },
    store: { sqlite: "no-store" },
    keys: { encryptionKey: { file: "no-encryption-key" } },
    audit: { instance: "as-1" },
    trustDomains: {
      "td.example": {
        bundle: { file: "no-bundle" },
        ...now(random, { admit: ["spiffe://td.example/agents/*"] }, 6),
      },
    },
    trustedIssuers: {
      [IDP]: { ...keys(IDP), subjects: "keep", ...now(random, { disabledSubjects: ["alice"] }, 6) },
      [STAFF]: { ...keys(STAFF), subjects: { table: { "7": "anna" } } },
      [ABROAD]: {
        ...keys(ABROAD),
        subjects: { prefix: "abroad:" },
        acceptAs: random.below(2) === 0 ? [] : ["jwt"],
        grants: {},
      },
    },
    signIn: { providers: { company: { issuer: IDP, clientId: "us" } } },
    clients: {
      report: {
        method: "client_secret_basic",
        secrets: [{ file: "no-secret" }],
        redirectUris: ["https://report.example/cb"],
      },
    },
    targets: [
      { names: ["desk", "the-desk"], owners: [BOOKING], scopes: SCOPES, people: true, ...binding() },
      {
        names: ["api"],
        owners: some(random, [PLANNER, "spiffe://td.example/crew/*"]),
        scopes: some(random, SCOPES),
        people: true,
        ...binding(),
      },
      { names: ["vault"], scopes: SCOPES, ...binding() },
      {
        kind: "partner",
        issuer: PARTNER,
        scopes: SCOPES,
        ...now(random, { subjects: { table: { alice: "a", anna: "b", [PLANNER]: "c" } } }),
        ...now(random, { jobs: "honours" }),
      },
    ],
    policies: Array.from({ length: 2 + random.below(5) }, (_, index) => randomRule(random, index)),
    drafts: [
      "draft-ietf-oauth-spiffe-client-auth-02",
      "draft-ietf-oauth-identity-chaining-17",
      "draft-ietf-oauth-identity-assertion-authz-grant-04",
    ],
  };
}

// --- brute force --------------------------------------------------------------------------------------------------

type Asker = { clientId: string; workload?: string };
type Held = Pick<Subject, "origin" | "scopes" | "chain"> & {
  name: string;
  mayAct: string;
  bound: string;
  job: boolean;
  traced: boolean;
};

/** The callers by name: for each prefix of the rules one below it that no rule names. */
const KIM = "spiffe://td.example/crew/kim";
const OTHER = "spiffe://td.example/agents/other";
const CALLERS = [PLANNER, BOOKING, KIM, OTHER].map((id) => ({ clientId: id, workload: id }));

/** `caller issuer subject target scope` of each token that can exist, with `traced` where the actor made a request behind it. */
function bruteForce(config: object, settings: Settings, actor: string): ReadonlySet<string> {
  const { policy, trustedIssuers, takesCertificates, trustDomains } = settings;
  const facts = new Set<string>();
  const seen = new Set<string>();
  const queue: Held[] = [];
  const rules = [...policy.rules.values()];
  const modes = MODE_NAMES.filter((mode) => rules.some(({ allow }) => allow === mode));
  const allNames = [...policy.targets.keys()].filter((name) => !name.startsWith(US));
  const names = new Map(
    modes.map((mode) => {
      const at = rules
        .filter(({ allow }) => allow === mode)
        .flatMap(({ targets }) => targets.map((name) => policy.targets.get(name)));
      return [mode, allNames.filter((name) => at.includes(policy.targets.get(name)))];
    }),
  );
  const job = { id: "job", bounds: { notAfterSeconds: FAR } };
  const isBinding = [...policy.targets.values()].some(({ binding }) => binding !== "none");
  const isInJob = rules.some(({ jobs }) => jobs !== undefined);
  const isNamed = rules.some((rule) => "consent" in rule && rule.consent === "may_act");
  const admitsAll = trustDomains.get("td.example")?.admit === "all";
  const callers: readonly Asker[] = [
    ...CALLERS.filter(({ clientId }) => admitsAll || clientId !== KIM),
    { clientId: "report" },
  ];

  const ask = (caller: Asker, mode: Mode, subject: Subject | undefined, held?: Held): void => {
    const me = caller.workload ?? caller.clientId;
    const withCertificate = takesCertificates ? [{ certificate: { x5t: me, notAfterSeconds: FAR } }] : [];
    const proofs = isBinding ? [{}, { jkt: me }, ...withCertificate] : [{}];
    for (const name of names.get(mode) ?? []) {
      const target = policy.targets.get(name);
      assert.ok(target);
      for (const scope of [undefined, ...SCOPES.map((one) => [one])]) {
        for (const keys of proofs) {
          for (const inJob of held?.job ? [true] : isInJob ? [false, true] : [false]) {
            const consents =
              subject === undefined
                ? []
                : [
                    {
                      id: "c",
                      version: 1,
                      origin: subject.origin,
                      actor: me,
                      targets: [name],
                      scopes: SCOPES,
                    },
                  ];
            const request = {
              ...caller,
              mode,
              target: name,
              keys,
              consents,
              nowSeconds: 0,
              ...(subject && { subject }),
              ...(scope && { scope }),
              ...(inJob && { job }),
            } as AccessRequest;
            // Most requests are none of any rule, and to refuse them costs more than to see that.
            const matters = rules.some(
              (rule) => rule.allow === mode && unmet(policy, request, rule) === undefined,
            );
            const got = matters ? decide(policy, request) : undefined;
            if (!got?.ok) continue;
            const origin = subject?.origin ?? { iss: US, sub: caller.clientId };
            const table = (config as { targets: { subjects?: { table: Record<string, string> } }[] })
              .targets[3]?.subjects?.table;
            const here =
              { [IDP]: origin.sub, [STAFF]: "anna", [ABROAD]: `abroad:${origin.sub}`, [US]: origin.sub }[
                origin.iss
              ] ?? "";
            if (target.partner && table && !Object.hasOwn(table, here)) continue;
            const traced = (held?.traced ?? false) || caller.clientId === actor;
            for (const one of got.value.scope) {
              facts.add(`${caller.clientId} ${origin.iss} ${origin.sub} ${target.names[0]} ${one}`);
              if (traced) facts.add(`traced ${origin.iss} ${origin.sub} ${target.names[0]} ${one}`);
            }
            if (target.partner) continue;
            const { chain } = MODES[mode];
            const { confirmation } = got.value;
            const next: Held = {
              ...{ origin, name, traced, job: inJob, scopes: got.value.scope },
              chain:
                chain === "grows"
                  ? [{ iss: US, sub: me }, ...(subject?.chain ?? [])]
                  : chain === "kept"
                    ? (subject?.chain ?? [])
                    : [],
              mayAct: chain === "hidden" ? "" : String(subject?.mayAct?.sub ?? ""),
              bound: confirmation === undefined ? "" : JSON.stringify(confirmation),
            };
            // The names in a chain count for nothing but the trace.
            const key = JSON.stringify({ ...next, scopes: next.scopes.toSorted(), chain: next.chain.length });
            if (seen.has(key)) continue;
            seen.add(key);
            queue.push(next);
          }
        }
      }
    }
  };

  // A workload without registration is no client of people.
  const of = (brings: string, { workload }: Asker) =>
    modes.filter((mode) => MODES[mode].brings === brings && (brings !== "code" || workload === undefined));
  for (const caller of callers) {
    for (const mode of of("nothing", caller)) ask(caller, mode, undefined);
    for (const origin of USERS) {
      const issuer = trustedIssuers.get(origin.iss);
      if (issuer === undefined || issuer.disabledSubjects.has(origin.sub)) continue;
      const base = { origin, expiresAtSeconds: FAR, chain: [], issuer: origin.iss, scopes: SCOPES };
      const named = [
        undefined,
        ...(isNamed ? callers : []).map((one) => ({ sub: one.workload ?? one.clientId, iss: US })),
      ];
      for (const mayAct of named) {
        const more = mayAct === undefined ? {} : { mayAct };
        for (const mode of issuer.grants === undefined ? [] : of("grant", caller))
          ask(caller, mode, { ...base, ...more, tokenType: "grant", audiences: [US] });
        for (const mode of issuer.acceptAs.length === 0 ? [] : of("subject_token", caller))
          for (const name of [US, ...allNames, caller.clientId])
            ask(caller, mode, { ...base, ...more, tokenType: "jwt", audiences: [US, name] });
      }
      for (const mode of origin.iss === IDP ? of("code", caller) : [])
        ask(caller, mode, { ...base, tokenType: "code", audiences: [], signIn: {} });
    }
  }
  for (const held of queue) {
    const { origin, scopes, chain, name, mayAct, bound } = held;
    const subject = {
      ...{
        tokenType: "access_token",
        origin,
        scopes,
        chain,
        audiences: [name],
        issuer: US,
        expiresAtSeconds: FAR,
      },
      ...(mayAct !== "" && { mayAct: { sub: mayAct, iss: US } }),
      ...(bound !== "" && { boundTo: JSON.parse(bound) }),
    } as Subject;
    for (const caller of callers)
      for (const mode of of("subject_token", caller)) ask(caller, mode, subject, held);
  }
  return facts;
}

// --- the same by the search ---------------------------------------------------------------------------------------

async function reachedIn(settings: Settings, actor: string) {
  const world = await worldOf(settings, { actor });
  const { grants, tokens } = searchReach(world, {
    isActor: ({ clientId, workload }) => [clientId, workload].includes(actor),
  });
  const ids = new Set([...world.callersOf.values()].flat().map(({ clientId }) => clientId));
  /** For what stands for others below a prefix, those that there are. */
  const named = (id: string): readonly string[] => {
    const prefix = /^(.*\/)any(?:-other)?$/.exec(id)?.[1];
    const below = CALLERS.filter(
      ({ clientId: one }) => prefix !== undefined && one.startsWith(prefix) && !ids.has(one),
    );
    return prefix === undefined ? [id] : below.map(({ clientId }) => clientId);
  };
  const facts = new Set<string>();
  for (const { step, origin, target, scopes, isTraced } of grants) {
    const isAny = world.outsiders.some(({ iss, any }) => iss === origin.iss && any === origin.sub);
    const users = USERS.filter(
      ({ iss, sub }) =>
        iss === origin.iss && (isAny ? !isDisabled(settings, { iss, sub }) : sub === origin.sub),
    );
    for (const { iss, sub } of origin.iss === US
      ? named(origin.sub).map((sub) => ({ iss: US, sub }))
      : users) {
      for (const scope of scopes) {
        if (target.names[0]?.startsWith(US)) continue;
        for (const caller of named(step.caller.clientId)) {
          // One that stands for others is the subject of its own request alone.
          if (iss === US && (caller === sub) !== (step.subject === undefined)) continue;
          facts.add(`${caller} ${iss} ${sub} ${target.names[0]} ${scope}`);
        }
        if (isTraced) facts.add(`traced ${iss} ${sub} ${target.names[0]} ${scope}`);
      }
    }
  }
  return { world, facts, grants, tokens };
}

const isDisabled = ({ trustedIssuers }: Settings, { iss, sub }: Origin): boolean =>
  trustedIssuers.get(iss)?.disabledSubjects.has(sub) ?? false;

/** Compares both in so many configurations; what differs is told with the seed of the configuration. */
export async function compareReach(count: number, seed: number, file: string) {
  let facts = 0;
  let chained = 0;
  let noes = 0;
  let mutants = 0;
  for (let index = 0; index < count; index++) {
    const random = prng(seed + index);
    const { config, settings } = randomConfig(random, file);
    const actor = random.pick(ACTORS);
    const reached = await reachedIn(settings, actor);
    const forced = bruteForce(config, settings, actor);
    const at = `seed ${seed + index}: ${JSON.stringify(config)}`;
    assert.deepEqual(
      [...forced].filter((one) => !reached.facts.has(one)),
      [],
      `not found, ${at}`,
    );
    assert.deepEqual(
      [...reached.facts].filter((one) => !forced.has(one)),
      [],
      `not there, ${at}`,
    );
    facts += forced.size;
    const found = await checkNoes(config as CheckedConfig, settings, random);
    noes += found.noes;
    mutants += found.mutants;
    chained += reached.grants.filter(({ depth }) => depth > 1).length;
  }
  return { facts, chained, noes, mutants };
}

/** Each no of one actor at a target has a certificate that the checker takes, and none that says less or another thing. */
async function checkNoes(config: CheckedConfig, settings: Settings, random: Prng) {
  let noes = 0;
  let mutants = 0;
  const actor = random.pick(ACTORS);
  for (const target of TARGETS) {
    const answer = await askReach(settings, { actor, target });
    assert.ok(answer.ok);
    const shown = JSON.parse(JSON.stringify(showReach(answer.value))) as { certificate?: Certificate };
    if (shown.certificate === undefined) continue;
    noes += 1;
    const at = JSON.stringify([config, shown.certificate]);
    assert.equal(checkCertificate(config, shown.certificate), undefined, at);
    for (const mutant of mutantsOf(shown.certificate, random)) {
      mutants += 1;
      assert.notEqual(checkCertificate(config, mutant), undefined, `${JSON.stringify(mutant)} of ${at}`);
    }
  }
  return { noes, mutants };
}

/** The certificate without a token, and with one that says less: each has a token that nothing covers any more. */
function mutantsOf(certificate: Certificate, random: Prng): readonly Certificate[] {
  const { tokens } = certificate;
  const index = random.below(Math.max(tokens.length, 1));
  const token = tokens[index];
  if (token === undefined) return [];
  const [dropped = "", ...scopes] = token.scope.split(" ");
  const less: Certificate["tokens"][number][] = [
    { ...token, hops: token.hops + 1 },
    { ...token, subject: { iss: token.subject.iss, sub: `${token.subject.sub}-not` } },
    { ...token, target: token.target === "desk" ? "vault" : "desk" },
    { ...token, may_act: `${token.may_act}-not` },
    { ...token, bound_to: `${token.bound_to}-not` },
    { ...token, scope: scopes.length > 0 ? scopes.join(" ") : `${dropped}-not` },
  ];
  if (!token.in_job) less.push({ ...token, in_job: true });
  if (token.by_actor) less.push({ ...token, by_actor: false });
  const others = tokens.toSpliced(index, 1);
  return [others, ...less.map((one) => [...others, one])].map((changed) => ({
    ...certificate,
    tokens: changed,
  }));
}

/** Policies of a random configuration for a server whose users are all of one issuer, which also gives grants. */
export function randomPolicies(random: Prng, file: string): Pick<CheckedConfig, "targets" | "policies"> {
  for (;;) {
    const { config } = randomConfig(random, file);
    const { targets, policies } = config as CheckedConfig;
    const played = policies
      .filter(({ allow, jobs }) => allow !== "authorization_code" && jobs === undefined)
      .map((rule) => {
        if (rule.subjects === undefined) return rule;
        const issuers = rule.subjects.issuers.map((iss) => (iss === US ? US : IDP));
        return { ...rule, subjects: { ...rule.subjects, issuers: [...new Set(issuers)] } };
      });
    if (played.length > 1) return { targets, policies: played };
  }
}
