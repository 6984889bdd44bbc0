/** RFC 8693: delegation with an actor token, impersonation without; the checks in the order of its ledger. */

import type { AuditEvent, TokenSummary } from "../audit/event.ts";
import { apiAudience } from "../policy/own-target.ts";
import type { Ports } from "../ports.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { Form, TokenAnswer } from "../spec/rfc6749.ts";
import { parseScope } from "../spec/rfc6749.ts";
import { parseJws } from "../spec/rfc7515.ts";
import type { Chain, Exchange } from "../spec/rfc8693.ts";
import { ACCESS_TOKEN, parseExchange } from "../spec/rfc8693.ts";
import { checkResources, requestedTarget } from "../spec/rfc8707.ts";
import { describeClient, describeRequest, describeToken } from "./audit-fields.ts";
import type { Authenticated } from "./authenticate-client.ts";
import { askingAs, issue, spentBy } from "./issue.ts";
import type { Failure, RefusedRequest, RequestNote } from "./refusal.ts";
import { verifySubject } from "./subject-token.ts";
import { verifyOwnToken } from "./verify-own-token.ts";
import { verifySvid } from "./verify-svid.ts";

export async function exchangeToken(
  ports: Ports,
  client: Authenticated,
  form: Form,
  request: RequestNote,
): Promise<Result<TokenAnswer, RefusedRequest>> {
  const { issuer, policy } = ports.settings();
  let event: Omit<AuditEvent, "type" | "outcome" | "reason"> = {
    request,
    client: describeClient(client),
    requested: describeRequest(form),
  };
  // PROD-6.1-1: refused exchanges are recorded too, with all that was known by then.
  const refuse = (failure: Failure) =>
    err({
      failure,
      event: { ...event, type: "token_exchange.denied", outcome: "deny", reason: failure.reason },
    } as const);

  const exchange = parseExchange(form);
  if (!exchange.ok) return refuse({ kind: "request_malformed", reason: exchange.error.kind });
  // PROD-3-2, PROD-3-3, PROD-3-7: the request alone chooses the mode.
  const mode = exchange.value.actor === undefined ? "impersonation" : "delegation";
  event = { ...event, mode };
  const { requestedType } = exchange.value;
  // IDC-2.3.1-2: otherwise `resource` is another name of the target; for an ID-JAG it is what lies behind the target.
  const behind = requestedType === "id-jag" ? form.resource : [];
  const target = requestedTarget(requestedType === "id-jag" ? [] : form.resource, form.audience, policy);
  if (!target.ok) return refuse({ kind: "target_refused", reason: target.error.kind });
  const resources = checkResources(behind);
  if (!resources.ok) return refuse({ kind: "target_refused", reason: resources.error.kind });
  const scope = form.scope === undefined ? undefined : parseScope(form.scope);
  if (scope?.ok === false) return refuse({ kind: "scope_refused", reason: scope.error.kind });

  // PROD-4.1r3-1
  const subject = await verifySubject(ports, exchange.value, client.clientId);
  if (!subject.ok) return refuse({ kind: "token_refused", reason: `subject_${subject.error.reason}` });
  const { sub, kind, note, ancestors, claims } = subject.value;
  const { origin, chain, mayAct } = subject.value.subject;
  // PROD-6.1-2: the whole incoming chain, also where the issued token will show none of it.
  event = {
    ...event,
    subject: { ...origin, kind, token: note },
    chain,
    ...(mayAct !== undefined && { may_act: mayAct }),
  };

  let outgoing: Chain = [];
  if (exchange.value.actor !== undefined) {
    // PROD-4.1r3-2
    const actor = await verifyActor(ports, client, exchange.value.actor);
    if (!actor.ok) return refuse({ kind: "token_refused", reason: `actor_${actor.error.reason}` });
    event = { ...event, actor: { iss: issuer, ...actor.value } };
    // RFC8693-4.1-5, PROD-4.1v6-4: the caller outermost, every earlier actor beneath.
    outgoing = [{ iss: issuer, sub: actor.value.sub }, ...chain];
  }

  return issue(ports, {
    ask: {
      mode,
      ...askingAs(client),
      subject: subject.value.subject,
      resources: behind,
      ...(requestedType !== undefined && { requestedType }),
      ...(target.value !== undefined && { target: target.value }),
      ...(scope !== undefined && { scope: scope.value }),
    },
    sub, // PROD-3-4, PROD-3-8
    chain: outgoing,
    ancestors,
    ...(claims !== undefined && { subjectClaims: claims }),
    event,
    allowedType: mode === "delegation" ? "token_exchange.delegation" : "token_exchange.impersonation",
    spends: spentBy(client),
    deniedType: "token_exchange.denied",
  });
}

type Actor = { sub: string; token: TokenSummary };

/** RFC8693-2.1-21, PROD-4.1v5-4: the actor token is the authenticated caller's own, nobody else's. */
function verifyActor(
  ports: Ports,
  client: Authenticated,
  { token, type }: NonNullable<Exchange["actor"]>,
): Promise<Result<Actor, { reason: string }>> {
  return type === ACCESS_TOKEN ? actorByOwnToken(ports, client, token) : actorBySvid(ports, client, token);
}

async function actorBySvid(
  ports: Ports,
  { svid, workload }: Authenticated,
  token: string,
): Promise<Result<Actor, { reason: string }>> {
  // PROD-4.1v5-5: the same JWT in both places is verified once.
  const actor = svid?.compact === token ? ok(svid) : await verifySvid(ports, token);
  if (!actor.ok) return actor;
  const { spiffeId, jws } = actor.value;
  if (spiffeId !== workload) return err({ reason: "not_the_caller" });
  return ok({
    sub: spiffeId,
    token: { type: "jwt-svid", fingerprint: ports.hash.sha256(jws.signingInput) },
  });
}

/** A client without SPIFFE ID of its own acts as the workload that the operator gave it, if he also allowed this. */
async function actorByOwnToken(
  ports: Ports,
  { clientId, workload, actorAccessToken = false }: Authenticated,
  token: string,
): Promise<Result<Actor, { reason: string }>> {
  if (!actorAccessToken || workload === undefined) return err({ reason: "access_token_not_allowed" });
  const jws = parseJws(token);
  if (!jws.ok) return err({ reason: jws.error.kind });
  const own = await verifyOwnToken(ports, jws.value);
  if (!own.ok) return own;
  const { record } = own.value;
  const { issuer } = ports.settings();
  // What goes in at our own endpoints is good for nothing else.
  if (record.audience === apiAudience(issuer)) return err({ reason: "token_for_own_endpoints" });
  // From its own credentials: a token that speaks for somebody says nothing of who holds it.
  const itself =
    record.origin.iss === issuer && record.origin.sub === clientId && record.clientId === clientId;
  if (!itself || record.ancestors.length > 0) return err({ reason: "not_the_caller" });
  return ok({ sub: workload, token: describeToken(ports, jws.value, "access_token") });
}
