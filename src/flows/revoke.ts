/** A client ends a token that was issued to it, and with it every token that descends from it (RFC 7009). */

import type { AuditEvent } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import type { EndingSelector } from "../policy/endings.ts";
import { isJobId } from "../policy/jobs.ts";
import type { OwnKeys, OwnTokenPorts, Ports } from "../ports.ts";
import type { Family, JobFacts } from "../records.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { isDeferralCode } from "../spec/deferred-token-response.ts";
import { type Form, isRefreshToken } from "../spec/rfc6749.ts";
import { parseTokenForm } from "../spec/rfc7009.ts";
import { type Jws, parseJws } from "../spec/rfc7515.ts";
import { stringClaim } from "../spec/rfc7519.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { describeClient, describeFamily } from "./audit-fields.ts";
import type { Authenticated } from "./authenticate-client.ts";
import { recordEnding } from "./endings.ts";
import { stopJob } from "./jobs.ts";
import type { Cancelled } from "./people.ts";
import type { AuditedRequest, Failure, RefusedRequest } from "./refusal.ts";
import { checkOwnTimes, findOwnKey } from "./verify-own-token.ts";

/**
 * RFC7009-2.2-1: a text that is no living token of ours counts as ended: the event says why, and the client learns
 * nothing.
 */
type Judged =
  | { cancelled: true }
  | { ends: EndingSelector; family?: Family }
  | { stops: JobFacts }
  | { nothing: Reason; jti?: string; grant?: Grant }
  | { refused: Failure; jti?: string; grant?: Grant };
type Grant = NonNullable<AuditEvent["grant"]>;

/** DTR-8.2-1: a client that waits for its user gives up, by the code of its deferral. */
export type Cancel = (code: string) => Promise<Cancelled>;

export type RevokePorts = OwnTokenPorts &
  Pick<Ports, "families" | "jobs" | "journal"> & { grantSigner: OwnKeys };

/** `nothing` says why a public client ended nothing, which is not on record. */
export async function revoke(
  ports: RevokePorts,
  client: Authenticated,
  request: AuditedRequest,
  form: Form,
  cancel?: Cancel,
): Promise<Result<{ nothing?: Reason }, RefusedRequest>> {
  let judged = await judgeForm(ports, client, form, cancel);
  if ("cancelled" in judged) return ok({});
  const about = { request, client: describeClient(client) };
  // RFC7009-2.1-8: the ending is durable before the answer, and is looked up at every next use.
  if ("stops" in judged) {
    const stopped = await stopJob(ports, judged.stops, { ...about, reason: "by_client" });
    if (stopped !== undefined) return ok({});
    judged = { nothing: "job_ended" };
  }
  if ("ends" in judged) {
    const { ends, family } = judged;
    // RFC7009-2.1-10, REFRESH-D-15: a refresh token ends with all that was issued for its family.
    const of = family && {
      type: "refresh.ended" as const,
      grant: { id: family.id },
      ...describeFamily(family),
    };
    await recordEnding(ports, ends, { ...about, ...of, reason: "by_client" });
    return ok({});
  }
  const { jti, grant } = judged;
  const denied = (reason: Reason): AuditEvent =>
    defined<AuditEvent>({
      ...about,
      type: "token.revocation_denied",
      outcome: "deny",
      reason,
      grant,
      detail: jti === undefined ? undefined : defined<JsonObject>({ jti }),
    });
  if ("refused" in judged) return err({ failure: judged.refused, event: denied(judged.refused.reason) });
  // Anyone who knows the name of a public client can be it, so what it sends in vain is counted and fills no trail.
  if (client.method === "none") return ok({ nothing: judged.nothing });
  await ports.journal.record({ event: denied(judged.nothing) });
  return ok({});
}

async function judgeForm(
  ports: RevokePorts,
  client: Authenticated,
  form: Form,
  cancel: Cancel | undefined,
): Promise<Judged> {
  const { clientId } = client;
  const token = parseTokenForm(form);
  if (!token.ok) return { refused: { kind: "request_malformed", reason: token.error.kind } };
  if (isDeferralCode(token.value)) return cancel?.(token.value) ?? { nothing: "deferral_unknown" };
  if (isRefreshToken(token.value)) return judgeRefreshToken(ports, clientId, token.value);
  if (isJobId(token.value)) return judgeJob(ports, client, token.value);
  const parsed = parseJws(token.value);
  if (!parsed.ok) return { nothing: parsed.error.kind };
  const jws = parsed.value;
  const key = findOwnKey(ports, jws);
  if (!key.ok) {
    // RFC7009-2.2.1-2: a grant for another server is redeemed there, and no ending here would reach it.
    return isOwnGrant(ports, jws)
      ? { refused: { kind: "token_type_unsupported", reason: "token_type_not_revocable" } }
      : { nothing: key.error.reason };
  }
  // Without a valid signature any text could be put on record.
  if (!ports.verifier.verify(jws, key.value)) return { nothing: "signature_invalid" };
  const jti = stringClaim(jws.claims, "jti");
  if (!jti.ok) return { nothing: jti.error.kind };
  const about = { jti: jti.value };
  // RFC7009-2.1-7: the answer is the same whether or not the token still stands.
  if (jws.claims.client_id !== clientId) {
    return { ...about, refused: { kind: "token_of_another", reason: "token_of_other_client" } };
  }
  const times = checkOwnTimes(ports, jws);
  if (!times.ok) return { ...about, nothing: times.error.reason };
  const facts = await ports.facts.token(jti.value);
  if (facts === undefined || facts.record.clientId !== clientId)
    return { ...about, nothing: "token_unknown" };
  // A token that a narrowed limit refuses for now is ended all the same.
  // REFRESH-D-16: an access token ends alone, with what was exchanged from it.
  return facts.ended === undefined
    ? { ends: { by: "token", jti: jti.value } }
    : { ...about, nothing: "token_revoked" };
}

/**
 * RFC7009-2-1, REFRESH-D-17: any refresh token of the family ends it, an old one too, if its sender names the client.
 */
async function judgeRefreshToken(ports: RevokePorts, clientId: string, token: string): Promise<Judged> {
  const found = await ports.families.find(ports.hash.sha256(token));
  if (found === undefined) return { nothing: "refresh_token_unknown" };
  const { family, presented, ended } = found;
  const grant = { id: family.id, generation: presented };
  if (family.clientId !== clientId) {
    return { grant, refused: { kind: "token_of_another", reason: "token_of_other_client" } };
  }
  return ended === undefined
    ? { ends: { by: "grant", id: family.id }, family }
    : { grant, nothing: "refresh_token_ended" };
}

/**
 * JOB-D-13: the agent ends its own job, once the work is done. Everyone else learns nothing, whatever they know of it: the
 * name of a public client proves nothing, and each target knows the id.
 */
async function judgeJob(
  ports: RevokePorts,
  { clientId, workload = clientId, method }: Authenticated,
  id: string,
): Promise<Judged> {
  const found = await ports.jobs.find(id);
  if (found === undefined) return { nothing: "job_unknown" };
  const { job } = found;
  // What a user approved for a client on its page has the client itself as agent, whatever workload it could be.
  const isAgent = job.actor === workload || job.actor === clientId;
  if (method === "none" || job.clientId !== clientId || !isAgent) return { nothing: "job_unknown" };
  return { stops: found };
}

function isOwnGrant(ports: Pick<RevokePorts, "grantSigner" | "verifier">, jws: Jws): boolean {
  const key = ports.grantSigner.own(jws.header);
  return key !== undefined && ports.verifier.verify(jws, key);
}
