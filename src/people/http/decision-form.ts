/** What the two pages have in common on which a user decides: the visitor, the id in the URL, and the form as it was sent. */

import { readFormText } from "../../http/body.ts";
import type { HttpRequest } from "../../http/handler.ts";
import type { ProposedJob } from "../../policy/jobs.ts";
import { hasSubject, type Target } from "../../policy/rules.ts";
import type { BasePorts } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { Agents } from "../../settings/agents.ts";
import type { Detail } from "../../spec/rfc9396.ts";
import { type Decision, type DecisionPage, endsAt, type Visitor } from "../flows/decision.ts";
import { furtherAgentsOf, type Offered, type Without } from "../flows/offer.ts";
import type { DecisionView } from "../pages/decision-parts.ts";
import type { PermissionView } from "../pages/display-names.ts";
import type { JobView } from "../pages/job-part.ts";
import type { Choice, Kept } from "../policy/permissions.ts";
import type { PeoplePorts } from "../ports.ts";
import { permissionView, shownDetail, shownParty, shownTarget, shownUser, zoneOf } from "./known-as.ts";
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

export function decisionView(
  ports: BasePorts,
  { id, session, offer, expiresAtSeconds, problem, ticked, ...page }: DecisionPage<Offered>,
): DecisionView {
  const { issuer, policy, agents } = ports.settings();
  const { choice, job, denied, rule } = offer;
  return defined<DecisionView>({
    at: choice.at.map(({ target, name, permissions, limits }) => ({
      target: shownTarget(target, name),
      permissions: permissions.map(({ box, scope, sentence }) => ({
        box,
        scope,
        sentence,
        unbounded: isUnbounded(target, scope, limits),
      })),
      limits: limits.map(({ box, detail }) => ({
        box,
        type: detail.type,
        governs: target.details.get(detail.type)?.governs ?? [],
        detail: shownDetail(target, detail),
      })),
    })),
    job: job && jobView(ports, job, choice, offer.without),
    inJob: offer.inJob && inJobView(agents, offer.inJob),
    untilSeconds: endsAt(ports, offer),
    kept: offer.kept && keptView(offer.kept, choice),
    nowSeconds: ports.clock.nowSeconds(),
    agents: furtherAgentsOf(policy, offer, session).map((one) => shownParty(agents, one)),
    denied,
    because: hasSubject(rule) ? rule.subjects.because : undefined,
    problem,
    ticked,
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

/** RAR-D-9: whether objects could limit an amount of it, and those that are asked do not. */
function isUnbounded({ details }: Target, scope: string, limits: readonly { detail: Detail }[]): boolean {
  const amounts = [...details].flatMap(([type, { governs, fields }]) =>
    governs.includes(scope)
      ? [...fields].flatMap(([field, { unit }]) => (unit === undefined ? [] : [{ type, field }]))
      : [],
  );
  const asked = limits.filter(({ detail }) => amounts.some(({ type }) => type === detail.type));
  const isBounded = ({ detail }: (typeof limits)[number]): boolean =>
    amounts.some(({ type, field }) => type === detail.type && detail[field] !== undefined);
  return amounts.length > 0 && (asked.length === 0 || !asked.every(isBounded));
}

/** JOB-D-28 */
const inJobView = (
  agents: Agents,
  { issuer, ...job }: NonNullable<Offered["inJob"]>,
): NonNullable<DecisionView["inJob"]> =>
  issuer === undefined ? job : { ...job, issuer: shownParty(agents, issuer) };

/** PAGE-D-45: what else is in the record, all of it at the target that asks. */
const keptView = ({ consent, permissions }: Kept, { at: [own] }: Choice): DecisionView["kept"] =>
  own && { ...permissionView({ ...own, permissions }), untilSeconds: consent.expiresAtSeconds ?? 0 };

/** JOB-D-5: every bound, and each agent that would take part. */
function jobView(
  { settings }: BasePorts,
  { title, bounds: { maxTokens, maxDepth, agents: named } }: ProposedJob,
  { at, agents: [asker, ...others], unasked }: Choice,
  { already, unasked: beside }: Without = { already: [], unasked: [] },
): JobView {
  const { agents } = settings();
  const boxes = at.reduce((sum, { permissions }) => sum + permissions.length, 0);
  /** What an agent gets of all that may be ticked; undefined for all of it. */
  const partOf = (may: ReadonlySet<string>): readonly PermissionView[] | undefined =>
    may.size === boxes
      ? undefined
      : at
          .map((one) => ({ ...one, permissions: one.permissions.filter(({ box }) => may.has(box)) }))
          .filter(({ permissions }) => permissions.length > 0)
          .map(permissionView);
  const unaskedOf = (id: string | undefined): readonly PermissionView[] =>
    unasked.filter(({ agent }) => agent === id).flatMap((one) => one.at.map(permissionView));
  return defined<JobView>({
    title,
    own: asker && partOf(asker.may),
    participants: others.map(({ id, may }) =>
      defined<JobView["participants"][number]>({
        box: id,
        party: shownParty(agents, id),
        may: partOf(may),
        unasked: unaskedOf(id),
      }),
    ),
    alone: named !== undefined && others.length === 0 ? true : undefined,
    maxTokens,
    maxDepth,
    without: already.map(permissionView),
    beside: beside.map(permissionView),
    unasked: unaskedOf(asker?.id),
    goOn: [...new Map([...at, ...unasked.flatMap((one) => one.at)].map((one) => [one.target, one])).values()]
      .filter(({ target }) => target.partner?.jobs === "ignores")
      .map(({ target, name }) => shownTarget(target, name)),
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
    details: form.getAll("detail"),
    agents: form.getAll("agent"),
    all: form.get("all") === "1",
    confirmed: form.get("confirm") === "1",
    formToken: form.get("token") ?? "",
  };
}
