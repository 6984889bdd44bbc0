/** RFC 8693: delegation with an actor token, impersonation without; the checks in the order of its ledger. */
import type { Ports } from "../ports.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { AuditEvent } from "../spec/audit.ts";
import type { Form, TokenAnswer } from "../spec/rfc6749.ts";
import { parseScope } from "../spec/rfc6749.ts";
import type { Chain } from "../spec/rfc8693.ts";
import { parseExchange } from "../spec/rfc8693.ts";
import { requestedTarget } from "../spec/rfc8707.ts";
import type { Authenticated } from "./authenticate-client.ts";
import { issue } from "./issue.ts";
import { describeClient, describeRequest } from "./notes.ts";
import type { Failure, Refusal, RequestNote } from "./outcome.ts";
import { verifySubject } from "./subject-token.ts";
import type { VerifiedSvid } from "./verify-svid.ts";
import { verifySvid } from "./verify-svid.ts";

export async function exchangeToken(
  ports: Ports,
  client: Authenticated,
  form: Form,
  request: RequestNote,
): Promise<Result<TokenAnswer, Refusal>> {
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
  const mode = exchange.value.actorToken === undefined ? "impersonation" : "delegation";
  event = { ...event, mode };
  const target = requestedTarget(form.resource, form.audience, policy);
  if (!target.ok) return refuse({ kind: "target_refused", reason: target.error.kind });
  const scope = form.scope === undefined ? undefined : parseScope(form.scope);
  if (scope?.ok === false) return refuse({ kind: "scope_refused", reason: scope.error.kind });

  // PROD-4.1r3-1
  const subject = await verifySubject(ports, exchange.value);
  if (!subject.ok) return refuse({ kind: "token_refused", reason: `subject_${subject.error.reason}` });
  const { sub, kind, note, ancestors } = subject.value;
  const { origin, chain, mayAct } = subject.value.subject;
  // PROD-6.1-2: the whole incoming chain, also where the issued token will show none of it.
  event = {
    ...event,
    subject: { ...origin, kind, token: note },
    chain,
    ...(mayAct !== undefined && { may_act: mayAct }),
  };

  let outgoing: Chain = [];
  if (exchange.value.actorToken !== undefined) {
    // PROD-4.1r3-2
    const actor = await verifyActor(ports, client, exchange.value.actorToken);
    if (!actor.ok) return refuse({ kind: "token_refused", reason: `actor_${actor.error.reason}` });
    const { spiffeId, jws } = actor.value;
    event = {
      ...event,
      actor: {
        iss: issuer,
        sub: spiffeId,
        token: { type: "jwt-svid", fingerprint: ports.hash.sha256(jws.signingInput) },
      },
    };
    // RFC8693-4.1-5, PROD-4.1v6-4: the caller outermost, every earlier actor beneath.
    outgoing = [{ iss: issuer, sub: spiffeId }, ...chain];
  }

  return issue(ports, {
    ask: {
      mode,
      clientId: client.clientId,
      subject: subject.value.subject,
      ...(client.workload !== undefined && { workload: client.workload }),
      ...(target.value !== undefined && { target: target.value }),
      ...(scope !== undefined && { scope: scope.value }),
    },
    sub, // PROD-3-4, PROD-3-8
    chain: outgoing,
    ancestors,
    event,
    allowedType: mode === "delegation" ? "token_exchange.delegation" : "token_exchange.impersonation",
    ...(client.spends !== undefined && { spends: client.spends }),
    deniedType: "token_exchange.denied",
  });
}

/** RFC8693-2.1-21, PROD-4.1v5-4: the actor token is a JWT-SVID of the authenticated caller, of nobody else. */
async function verifyActor(
  ports: Ports,
  client: Authenticated,
  actorToken: string,
): Promise<Result<VerifiedSvid, { reason: string }>> {
  // PROD-4.1v5-5: the same JWT in both places is verified once.
  const same = client.svid?.compact === actorToken ? client.svid : undefined;
  const actor = same === undefined ? await verifySvid(ports, actorToken) : ok(same);
  if (actor.ok && actor.value.spiffeId !== client.workload) return err({ reason: "not_the_caller" });
  return actor;
}
