/** What the two pages have in common on which a user decides: the visitor, the id in the URL, and the form as it was sent. */

import { readFormText } from "../../http/body.ts";
import type { HttpRequest } from "../../http/handler.ts";
import type { ProposedJob } from "../../policy/jobs.ts";
import type { BasePorts } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { Decision, DecisionPage, Offered, Visitor, Without } from "../flows/decision.ts";
import { furtherAgents } from "../flows/offer.ts";
import type { DecisionView } from "../pages/decision-parts.ts";
import type { JobView } from "../pages/job-part.ts";
import type { PeoplePorts } from "../ports.ts";
import {
  permissionsBy,
  permissionView,
  sentenceOf,
  shownDetails,
  shownParty,
  shownTarget,
  shownUser,
  zoneOf,
} from "./known-as.ts";
import { digestOf } from "./page-answers.ts";

export const MALFORMED = {
  next: "notice",
  notice: { kind: "form_refused", reason: "form_token_wrong" },
} as const;

export const idOf = (query: URLSearchParams): string => query.get("r") ?? "";

export const visitorOf = (ports: Pick<PeoplePorts, "hash">, request: HttpRequest): Visitor =>
  defined<Visitor>({
    browser: digestOf(ports, request, "browser"),
    session: digestOf(ports, request, "session"),
  });

/** `audience` is the name of the target that the page shows. */
export function decisionView(
  ports: BasePorts,
  { id, session, offer: { target, scope, details, job }, expiresAtSeconds, ...page }: DecisionPage<Offered>,
  audience: string,
): DecisionView {
  const { issuer, policy, signIn, agents } = ports.settings();
  const untilSeconds = ports.clock.nowSeconds() + (signIn?.consentSeconds ?? 0);
  return defined<DecisionView>({
    target: shownTarget(target, audience),
    // Each scope in the operator's words.
    scopes: scope.map((value) => ({ value, sentence: sentenceOf(target, value) })),
    details: shownDetails(target, details),
    job: job && jobView(ports, job, scope, untilSeconds, page.without),
    untilSeconds,
    agents: furtherAgents(policy, target, scope, session).map((id) => shownParty(agents, id)),
    user: shownUser(session),
    zone: zoneOf(ports, session),
    formToken: page.formToken,
    signOutToken: page.signOutToken,
    request: id,
    base: issuer,
    minutesLeft: minutesUntil(ports.clock, expiresAtSeconds),
    renewable: page.renewable,
  });
}

/** JOB-D-5: every bound, with targets and agents by name. */
function jobView(
  { settings }: BasePorts,
  { title, bounds }: ProposedJob,
  scope: readonly string[],
  lastsUntil: number,
  without: Without = { consents: [], rules: [] },
): JobView {
  const { policy, agents } = settings();
  const targets = (bounds.targets ?? []).map((name) => ({ name, target: policy.targets.get(name) }));
  const shown = targets.map(({ name, target }) => shownTarget(target, name));
  const sentences = (bounds.scopes ?? scope).map((one) => {
    const of = targets.find(({ target }) => target?.scopes.includes(one));
    return sentenceOf(of?.target, one);
  });
  return defined<JobView>({
    title,
    untilSeconds: Math.min(bounds.notAfterSeconds, lastsUntil),
    targets: shown,
    scopes: sentences,
    agents: (bounds.agents ?? []).map((id) => shownParty(agents, id)),
    maxTokens: bounds.maxTokens,
    maxDepth: bounds.maxDepth,
    without: without.consents.flatMap(({ targets: names, scopes }) =>
      names.map((name) => permissionView(policy.targets.get(name), name, scopes)),
    ),
    beside: permissionsBy(policy, without.rules),
    goOn: shown.filter((_, index) => targets[index]?.target?.partner?.jobs === "ignores"),
  });
}

export const minutesUntil = (clock: BasePorts["clock"], expiresAtSeconds: number): number =>
  Math.max(1, Math.floor((expiresAtSeconds - clock.nowSeconds()) / 60));

/** Reads the form of a page; undefined for anything else. */
export async function readDecision(request: HttpRequest): Promise<Decision | undefined> {
  const body = await readFormText(request);
  if (!body.ok) return undefined;
  const form = new URLSearchParams(body.value);
  const decision = form.get("decision");
  if (decision !== "allow" && decision !== "refuse") return undefined;
  return {
    allows: decision === "allow",
    scopes: form.getAll("scope"),
    details: form.getAll("detail").map(Number),
    all: form.get("all") === "1",
    confirmed: form.get("confirm") === "1",
    formToken: form.get("token") ?? "",
  };
}
