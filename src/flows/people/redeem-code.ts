/** RFC 6749 4.1.3: an authorization code, once and by its own client, for an access token of the user who allowed it. */
import type { Ports } from "../../ports.ts";
import type { CodeRecord, Guard } from "../../records.ts";
import type { Result } from "../../result.ts";
import { defined, err, ok } from "../../result.ts";
import { isVerifier } from "../../spec/rfc7636.ts";
import { requestedTarget } from "../../spec/rfc8707.ts";
import type { Order, Refused, RequestingClient, ResolvedSubject } from "../ask/order.ts";
import { readOrder } from "../ask/read-order.ts";
import { describeRequest } from "../audit-fields.ts";
import { endTokens } from "../endings.ts";
import type { AuditedRequest, Failure, RefusedRequest } from "../refusal.ts";
import { checkOrigin } from "../still-covers.ts";
import type { TokenRequest } from "../token-request.ts";
import { refuseRequest } from "../token-request.ts";

const MODE = { mode: "authorization_code" } as const;

export async function readCode(ports: Ports, request: TokenRequest): Promise<Result<Order, RefusedRequest>> {
  const { client, form } = request;
  const known = { ...MODE, requested: describeRequest(form) };
  const { code } = form;
  // RFC6749-4.1.3-1
  if (code === undefined) {
    return refuseRequest(request, { kind: "request_malformed", reason: "code_missing" }, known);
  }
  const key = ports.hash.sha256(code);
  const row = await ports.shortLived.find("code", key, ports.clock.nowSeconds());
  // RFC6749-4.1.3-5, RFC6749-10.5-3: another client's code stays as it was, so that none can be spoiled from outside.
  if (row === undefined || row.body.clientId !== client.clientId) {
    return refuseRequest(request, { kind: "grant_refused", reason: "code_unknown" }, known);
  }
  // RFC7636-4.6-1, RFC9700-4.2.4-3: used up by the first attempt of its client, so that no verifier is tried twice.
  const spends = guardOf(ports, key, row.expiresAtSeconds);
  const refuse = (refused: { ok: false; error: RefusedRequest }) => err({ ...refused.error, spends });
  const failure = checkRequest(ports, request, row.body);
  if (failure !== undefined) return refuse(refuseRequest(request, failure, known));
  const subject = (): Promise<Result<ResolvedSubject, Refused>> =>
    Promise.resolve(subjectOf(ports, key, row.body, spends));
  const { target, scopes } = row.body;
  const order = await readOrder(
    ports,
    plainClient(client),
    { ...MODE, audience: [target], resource: [], scope: scopes.join(" ") },
    { subject },
  );
  if (order.ok) return ok({ ...order.value, jti: tokenOf(ports, key) });
  const { failure: why, parties } = order.error;
  return refuse(refuseRequest(request, why, { ...known, ...parties }));
}

const guardOf = ({ settings }: Pick<Ports, "settings">, key: string, expiresAtSeconds: number) =>
  ({ kind: "code_fresh", issuer: `${settings().issuer}/code`, jti: key, expiresAtSeconds }) satisfies Guard;

/** The `jti` of the token that a code gives, so that a second use finds it; from 256 random bits, and not back to them. */
const tokenOf = ({ hash }: Pick<Ports, "hash">, key: string): string =>
  hash.sha256(JSON.stringify(["token of code", key])).slice(0, 22);

/** The consent names the client and not its workload: it is no actor before it exchanges what it gets here. */
const plainClient = ({
  clientId,
  registrationClass,
  scopes,
  bindsBy,
  keys,
}: TokenRequest["client"]): RequestingClient =>
  defined<RequestingClient>({ clientId, registrationClass, scopes, bindsBy, keys });

/** What the token request has to repeat of the authorization request (RFC6749-4.1.3-6, RFC6749-10.6-1). */
function checkRequest(
  { settings, clock, hash }: Ports,
  { form }: TokenRequest,
  code: CodeRecord,
): Failure | undefined {
  // RFC6749-4.1.2-1
  if (clock.nowSeconds() >= code.usableUntilSeconds) return { kind: "grant_refused", reason: "code_expired" };
  // RFC6749-4.1.3-7, RFC9700-4.5.3-1: the URI that was used, byte for byte, port and all.
  const { redirect_uri: redirectUri, code_verifier: verifier } = form;
  if (redirectUri === undefined ? code.redirectUriSent : redirectUri !== code.redirectUri) {
    return { kind: "grant_refused", reason: "code_redirect_uri_differs" };
  }
  // RFC9700-2.1.1-4, RFC7636-4.5-1: every code has a challenge, and the method is that of the code.
  if (verifier === undefined) return { kind: "request_malformed", reason: "code_verifier_missing" };
  if (!isVerifier(verifier) || !hash.equal(hash.sha256(verifier), code.challenge)) {
    return { kind: "grant_refused", reason: "code_verifier_wrong" };
  }
  // MCPC-D-13: fixed at the authorization endpoint; here it is left out or the same.
  const { policy } = settings();
  const named = requestedTarget(form.resource, [], policy);
  if (!named.ok) return { kind: "target_refused", reason: named.error.kind };
  const differs =
    named.value !== undefined && policy.targets.get(named.value) !== policy.targets.get(code.target);
  return differs ? { kind: "target_refused", reason: "code_target_differs" } : undefined;
}

function subjectOf(
  { settings, clock }: Ports,
  key: string,
  { origin, sub, scopes, signedInAtSeconds, authTimeSeconds, acr }: CodeRecord,
  spends: Guard,
): Result<ResolvedSubject, Refused> {
  const parties = {
    subject: { ...origin, kind: "user", token: { type: "code", fingerprint: key } },
  } as const;
  const known = checkOrigin(settings(), origin);
  if (!known.ok) return err({ reason: known.error, parties });
  return ok(
    defined<ResolvedSubject>({
      sub,
      subject: {
        tokenType: "code",
        origin,
        audiences: [],
        scopes,
        expiresAtSeconds: clock.nowSeconds(),
        chain: [],
        issuer: origin.iss,
      },
      // What ends the user's sign-ins up to a time ends what they led to.
      root: { issuedAtSeconds: signedInAtSeconds },
      signIn: defined({ authTimeSeconds, acr }),
      spends,
      parties,
    }),
  );
}

/** RFC6749-4.1.2-4, RFC6749-10.5-4, RFC9700-4.2.4-4: a code that comes twice was stolen once, so what it gave ends. */
export async function endReplayed(
  ports: Ports,
  request: AuditedRequest,
  { jti: key }: Extract<Guard, { kind: "code_fresh" }>,
): Promise<void> {
  const jti = tokenOf(ports, key);
  const facts = await ports.facts.token(jti);
  if (facts === undefined || facts.ended !== undefined) return;
  await endTokens(ports, { by: "token", jti }, { reason: "code_replayed", request });
}
