/** `mandate policy reach`: what could ever come of a policy, as text, JSON or a diagram. */
import { spelledOut } from "../../audit/safe-text.ts";
import type { Origin, Subject } from "../../policy/access.ts";
import { meant } from "../../policy/nearest.ts";
import { isNamedBy, type ReachResult, searchReach, stepsTo } from "../../policy/reach.ts";
import type { Obtained, ReachCaller, Step, World } from "../../policy/reach-moves.ts";
import type { PolicySet, Target } from "../../policy/rules.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import { CLIENT_ID_PREFIX } from "../../spec/rfc7591.ts";
import { isPlatformName, isWorkloadPattern } from "../../spec/workload-grant.ts";
import { worldOf } from "./world.ts";

/** What is asked: what an actor could do, who could act for a subject, who could reach a target; or all of them. */
export type ReachQuery = { actor?: string; subject?: Origin; target?: string; depthMax?: number };

export type ReachAnswer = {
  query: ReachQuery;
  world: World;
  grants: readonly Obtained[];
  tokens: ReachResult["tokens"];
};

/** An unknown name would get the answer that nothing is reached, so it is refused (REACH-D-4). */
export async function askReach(settings: Settings, query: ReachQuery): Promise<Result<ReachAnswer, string>> {
  const { actor, subject, target: named, depthMax } = query;
  const target = named === undefined ? undefined : findTarget(settings.policy, named);
  if (target?.ok === false) return target;
  if (actor !== undefined && !isKnownActor(settings, actor)) {
    return err(
      `"${actor}" is no client of the configuration and no workload of its trust domains and platforms`,
    );
  }
  const { issuer, trustedIssuers } = settings;
  if (subject !== undefined && subject.iss !== issuer && !trustedIssuers.has(subject.iss)) {
    return err(`"${subject.iss}" is no trusted issuer${meant(subject.iss, trustedIssuers.keys())}`);
  }
  const world = await worldOf(settings, { actor, subject });
  const isActor = actor === undefined ? undefined : isNamedBy(actor);
  const { grants, tokens } = searchReach(
    world,
    defined<Parameters<typeof searchReach>[1] & object>({ isActor, depthMax }),
  );
  const fits = ({ origin, target: at, isTraced }: Obtained): boolean =>
    (actor === undefined || isTraced) &&
    (subject === undefined || (origin.iss === subject.iss && origin.sub === subject.sub)) &&
    (target === undefined || at === target.value);
  // Two that stand for the same others are one for the reader.
  const told = new Map(grants.filter(fits).map((one) => [describe(world, one).join(), one]));
  return ok({ query, world, grants: [...told.values()], tokens });
}

export type NeverResult = { name: string; answer: ReachAnswer };

/** REACH-D-8: the same for each actor that must never reach a target; of an actor one search has all targets. */
export async function runNever(
  settings: Settings,
  vectors: readonly { name: string; never: { actor: string; target: string } }[],
): Promise<Result<readonly NeverResult[], string>> {
  const searches = new Map<string, ReturnType<typeof askReach>>();
  const results: NeverResult[] = [];
  for (const { name, never } of vectors) {
    const search = searches.get(never.actor) ?? askReach(settings, { actor: never.actor });
    searches.set(never.actor, search);
    const [answer, target] = [await search, findTarget(settings.policy, never.target)];
    if (!answer.ok) return err(`${name}: ${answer.error}`);
    if (!target.ok) return err(`${name}: ${target.error}`);
    const grants = answer.value.grants.filter((one) => one.target === target.value);
    results.push({ name, answer: { ...answer.value, query: never, grants } });
  }
  return ok(results);
}

function findTarget({ targets }: PolicySet, name: string): Result<Target, string> {
  const target = targets.get(name);
  return target === undefined ? err(`"${name}" is no target${meant(name, targets.keys())}`) : ok(target);
}

function isKnownActor({ clients, trustDomains, platforms }: Settings, name: string): boolean {
  const [scheme, , place = ""] = name.split("/");
  if (isPlatformName(name)) return platforms.has(place) && isWorkloadPattern(name);
  if (clients.has(name) || scheme === "https:" || name.startsWith(CLIENT_ID_PREFIX)) return true;
  const isWorkloadOfClient = clients.values().some(({ workload }) => workload === name);
  return isWorkloadOfClient || (isWorkloadPattern(name) && trustDomains.has(place));
}

// --- as text ------------------------------------------------------------------------------------------------------

const isAnyOf = ({ outsiders }: World, { iss, sub }: Origin): boolean =>
  outsiders.some((one) => one.iss === iss && one.any === sub);

/** The subject in words; a caller that stands for others is named as its pattern. */
function subjectOf(world: World, one: Obtained): string {
  const [first] = stepsTo(one);
  if (first?.subject === undefined) return `${first?.caller.label}${one.depth === 1 ? " itself" : ""}`;
  return isAnyOf(world, one.origin)
    ? `any subject of ${one.origin.iss}`
    : `${one.origin.sub} of ${one.origin.iss}`;
}

export function formatReach({ world, grants, tokens, query }: ReachAnswer): readonly string[] {
  if (grants.length === 0) {
    const within = query.depthMax === undefined ? "" : ` within ${query.depthMax} requests`;
    return [
      `No${within}: no order of requests leads there, whatever the issuers sign and the users consent to.`,
      `The tokens that can exist: ${tokens.length}.`,
    ];
  }
  const lines = Map.groupBy(
    grants.map((one) => describe(world, one)),
    ([title]) => title,
  );
  return [...lines].flatMap(([title, all]) => [title, ...all.map(([, line]) => line)]);
}

/** The caller with the subject, and a line for the target with the way there. */
function describe(world: World, one: Obtained): readonly [title: string, line: string] {
  const steps = stepsTo(one);
  const before = steps.slice(0, -1).map(({ caller }) => caller.label);
  const after = before.length === 0 ? "" : ` after ${before.join(", ")}`;
  const rules = [...new Set(steps.map(({ rule }) => rule))].join(", ");
  return [
    `${one.step.caller.label} for ${subjectOf(world, one)}`,
    `  at ${one.target.names[0]}: ${one.scopes.join(" ")}${after} (${rules})`,
  ];
}

// --- as JSON ------------------------------------------------------------------------------------------------------

/** REACH-D-7: `certificate` is the proof of a no: every token that can exist is covered by one of these, and none is what is asked for. */
export function showReach({ world, query, grants, tokens }: ReachAnswer): object {
  const { depthMax, ...claim } = query;
  const isProof = grants.length === 0 && depthMax === undefined;
  const shown = tokens.map((one) => showToken(world, one));
  return {
    reached: grants.length > 0,
    grants: grants.map((one) => ({
      ...showCaller(one.step.caller),
      subject: showOrigin(world, one.origin),
      target: one.target.names[0],
      scope: one.scopes.join(" "),
      requests: stepsTo(one).map(showStep),
    })),
    certificate: isProof ? { digest: world.policy.digest, claim, tokens: shown } : undefined,
  };
}

const showCaller = ({ label, clientId, workload, registrationClass }: ReachCaller) => ({
  caller: label,
  client: clientId,
  workload,
  class: registrationClass,
});

/** `any`: it stands for every other subject of the issuer. */
const showOrigin = (world: World, origin: Origin) => ({
  ...origin,
  any: isAnyOf(world, origin) || undefined,
});

const showToken = (world: World, one: Obtained) => ({
  subject: showOrigin(world, one.origin),
  target: one.target.names[0],
  scope: one.scopes.join(" "),
  hops: one.hops,
  in_job: one.inJob,
  by_actor: one.isTraced,
  may_act: one.mayAct,
  bound_to: one.boundTo,
});

/** A request in its order; a token that the one before gave is told from one of elsewhere. */
const showStep = ({ caller, mode, rule, subject, target, scope, needsConsent, inJob, proof }: Step) => ({
  ...showCaller(caller),
  mode,
  rule,
  target,
  scope: scope.join(" "),
  presents: subject && ("step" in subject ? "the token of the request before" : showSubject(subject)),
  consent: needsConsent || undefined,
  job: inJob || undefined,
  proof,
});

const showSubject = ({ tokenType, origin, audiences, scopes, mayAct }: Subject) => ({
  type: tokenType,
  ...origin,
  aud: audiences,
  scope: scopes.join(" "),
  may_act: mayAct,
});

// --- as a diagram -------------------------------------------------------------------------------------------------

/** REACH-D-5: every character that could mean something to Mermaid or HTML is written as its number. */
const asLabel = (text: string): string =>
  spelledOut(text, /[^\S ]/g).replace(/[^A-Za-z0-9 .:/_*@-]/gu, (char) => `#${char.codePointAt(0)};`);

/** From the subject through the callers, in the order of the requests, to the target. */
export function drawReach({ world, grants }: ReachAnswer): readonly string[] {
  const nodes = new Map<string, string>();
  const node = (kind: string, name: string): string => {
    const key = `${kind} ${name}`;
    const id = nodes.get(key) ?? `n${nodes.size}`;
    nodes.set(key, id);
    return id;
  };
  const edges = new Map<string, Set<string>>();
  const edge = (from: string, to: string, scopes: readonly string[]): void => {
    const key = `${from} ${to}`;
    edges.set(key, new Set([...(edges.get(key) ?? []), ...scopes]));
  };
  for (const one of grants) {
    let from = node("subject", subjectOf(world, one));
    for (const { caller } of stepsTo(one)) {
      const to = node("caller", caller.label);
      edge(from, to, []);
      from = to;
    }
    edge(from, node("target", one.target.names[0] ?? ""), one.scopes);
  }
  const shapes: Readonly<Record<string, readonly [string, string]>> = {
    subject: ['(["', '"])'],
    caller: ['["', '"]'],
    target: ['[("', '")]'],
  };
  const drawn = [...nodes].map(([key, id]) => {
    const [kind = "", ...name] = key.split(" ");
    const [open, close] = shapes[kind] ?? ['["', '"]'];
    return `  ${id}${open}${asLabel(name.join(" "))}${close}`;
  });
  const arrows = [...edges].map(([key, scopes]) => {
    const [from, to] = key.split(" ");
    return scopes.size === 0
      ? `  ${from} --> ${to}`
      : `  ${from} -->|"${asLabel([...scopes].join(" "))}"| ${to}`;
  });
  return ["flowchart LR", ...drawn, ...arrows];
}
