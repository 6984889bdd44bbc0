/** A JWT-SVID, as client assertion or as actor token: from its text to the workload that it proves. */
import type { TokenReason } from "../audit/reasons.ts";
import type { BasePorts, FetchRefused, KeyFailure, Ports } from "../ports.ts";
import { type Awaitable, defined, err, ok, type Result, whenOk, whenReady } from "../result.ts";
import { assertionAudiences } from "../settings/audiences.ts";
import type { PresentedAssertion } from "../spec/rfc7521.ts";
import { resolveClient } from "../spec/spiffe/client-auth.ts";
import { checkJwtSvid, parseJwtSvid } from "../spec/spiffe/jwt-svid.ts";
import { checkAssociation, findClient } from "./find-client.ts";
import type { MethodVerifier, Proof, Proven, VerifiedSvid } from "./verifier.ts";

export function verifySvid(
  ports: BasePorts & Pick<Ports, "bundles" | "verifier">,
  parsed: ReturnType<Ports["verifier"]["parse"]>,
  endpoint: string,
  clientId?: string,
): Awaitable<Result<VerifiedSvid, { reason: TokenReason }>> {
  const settings = ports.settings();
  if (!parsed.ok) return err({ reason: parsed.error.kind });
  const jws = parsed.value;
  const named = parseJwtSvid(jws);
  if (!named.ok) return err({ reason: named.error.kind });
  const { trustDomain } = named.value;
  const spiffeId = named.value.spiffeId.id;
  // SPCA-5-1, PROD-2.1-8: only a configured trust domain counts, with its own bundle (SID-3-1, PROD-2.3-13) and never
  // with keys found through `iss` (SPCA-8.1-1, SPCA-8.1-2).
  if (!settings.trustDomains.has(trustDomain)) return err({ reason: "trust_domain_unknown" });
  return whenReady(ports.bundles.key(trustDomain, jws.header), (key) => {
    if (!key.ok) return err({ reason: `bundle_${key.error satisfies KeyFailure}` });
    // SID-3.2-1: the SPIFFE ID above is part of what is signed.
    if (!ports.verifier.verifyRepeated(jws, key.value)) return err({ reason: "signature_invalid" });
    // SPCA-8.1-4: audience and expiry, by the rules for JWT-SVIDs.
    const checked = checkJwtSvid(jws, {
      audiences: assertionAudiences(settings, endpoint, clientId),
      nowSeconds: ports.clock.nowSeconds(),
      skewSeconds: settings.clockSkewSeconds,
    });
    if (!checked.ok) return err({ reason: checked.error.kind });
    return ok({ compact: jws.compact, spiffeId, trustDomain, audience: checked.value.audience, jws });
  });
}

/** SPCA-3.1-8: the workload as the client that the request names, or as a client without registration. */
export const verifySvidAssertion: MethodVerifier<PresentedAssertion> = (
  ports,
  { assertion, clientId: requested },
  { address },
  _paths,
  endpoint,
) =>
  whenOk(
    verifySvid(ports, ports.verifier.parse(assertion), endpoint, requested),
    (svid): Awaitable<Result<Proven, FetchRefused>> => {
      const { spiffeId, trustDomain, audience, jws } = svid;
      const proof = defined<Proof>({ aud: audience, kid: jws.header.kid, typ: jws.header.typ });
      const proven = { method: "spiffe_jwt", workload: spiffeId, svid, proof } as const;
      if (requested !== undefined && !requested.startsWith("spiffe://")) {
        return whenOk(findClient(ports, requested, address), (client) => {
          if (client.auth.method !== proven.method) return err({ reason: "method_not_registered" });
          const associated = checkAssociation(ports, client, spiffeId, trustDomain);
          return associated.ok ? ok({ clientId: client.clientId, record: client, ...proven }) : associated;
        });
      }
      const domain = ports.settings().trustDomains.get(trustDomain);
      if (domain === undefined) return err({ reason: "trust_domain_unknown" });
      const clientId = resolveClient(spiffeId, requested, domain);
      return clientId.ok ? ok({ clientId: clientId.value, ...proven }) : err({ reason: clientId.error.kind });
    },
  );
