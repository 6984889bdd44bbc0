/** A client by the certificate of the TLS handshake: an X.509-SVID, or one of the two methods of RFC 8705. */

import type { Reason } from "../audit/reasons.ts";
import type { FetchRefused, Paths, Ports } from "../ports.ts";
import { type Awaitable, err, ok, type Result, whenOk } from "../result.ts";
import type { Client } from "../settings/settings.ts";
import type { Certificate } from "../spec/rfc5280.ts";
import type { PresentedCertificate } from "../spec/rfc7521.ts";
import { checkClientCertificate, checkSelfSigned } from "../spec/rfc8705.ts";
import { resolveClient } from "../spec/spiffe/client-auth.ts";
import { checkSigners, parseX509Svid } from "../spec/spiffe/x509-svid.ts";
import { checkAssociation, findClient } from "./find-client.ts";
import { type MethodVerifier, noCredentials, type Proven } from "./verifier.ts";

type Refused = FetchRefused;

/** RFC8705-2-1: the client's record decides the method; only a SPIFFE ID needs no record. */
export const verifyCertificate: MethodVerifier<PresentedCertificate> = (
  ports,
  { clientId: requested },
  { certificates, leaf, address },
  paths,
) => {
  // RFC8705-2-2: only the handshake of this connection proves a certificate.
  if (leaf === undefined) return err({ reason: noCredentials(ports) });
  if (!leaf.ok) return err({ reason: leaf.error.kind });
  const chain = { leaf: leaf.value, others: certificates.slice(1), paths };
  // RFC8705-3.1-2: the thumbprint of the leaf, for the audit trail.
  const proof = { x5t: ports.hash.sha256(leaf.value.der) };
  if (requested === undefined || requested.startsWith("spiffe://")) {
    return whenOk(verifySvidPath(ports, chain), ({ spiffeId, trustDomain }): Result<Proven, Refused> => {
      const domain = ports.settings().trustDomains.get(trustDomain);
      if (domain === undefined) return err({ reason: "trust_domain_unknown" });
      // RFC8705-2-3, SPCA-3.2-2: without a client_id the SAN identifies the client, unless the operator requires one.
      const clientId = resolveClient(spiffeId, requested, domain);
      if (!clientId.ok) return err({ reason: clientId.error.kind });
      return ok({ clientId: clientId.value, method: "spiffe_x509", workload: spiffeId, proof });
    });
  }
  return whenOk(findClient(ports, requested, address), (record) =>
    whenOk(checkMethod(ports, record, chain), (checked) =>
      ok({ clientId: record.clientId, method: record.auth.method, record, proof, ...checked }),
    ),
  );
};

type Chain = { leaf: Certificate; others: readonly Uint8Array[]; paths: Paths };

/** Verifies the certificate by the one method that is on record. */
type CertificatePorts = Pick<Ports, "settings" | "clock" | "bundles">;

function checkMethod(
  ports: CertificatePorts,
  client: Client,
  chain: Chain,
): Awaitable<Result<{ workload?: string }, Refused>> {
  const { auth } = client;
  const nowSeconds = ports.clock.nowSeconds();
  switch (auth.method) {
    case "spiffe_x509":
      return whenOk(verifySvidPath(ports, chain), ({ spiffeId, trustDomain }) => {
        const associated = checkAssociation(ports, client, spiffeId, trustDomain);
        return associated.ok ? ok({ workload: spiffeId }) : associated;
      });
    case "tls_client_auth": {
      // RFC8705-2.1-1: a valid path to the authorities of this client, and the one expected subject.
      const path = chain.paths.verify(chain.leaf, chain.others, auth.anchors, nowSeconds);
      if (!path.ok) return err({ reason: path.error.kind });
      const subject = checkClientCertificate(chain.leaf, auth.subject);
      return subject.ok ? ok({}) : err({ reason: subject.error.kind });
    }
    case "self_signed_tls_client_auth": {
      // RFC8705-2.2-2, RFC8705-2.2-3: a registered certificate, from any issuer, while it is valid.
      const same = checkSelfSigned(chain.leaf, auth.certificates, { nowSeconds });
      return same.ok ? ok({}) : err({ reason: same.error.kind });
    }
    default:
      return err({ reason: "method_not_registered" });
  }
}

/** Failures that a newer bundle could resolve. */
const UNKNOWN_AUTHORITY: readonly Reason[] = ["issuer_unknown", "issuer_signature_wrong"];

/** PROD-2.3-13, SPCA-3.2-3: the leaf is verified only with the bundle of the trust domain that it names. */
function verifySvidPath(
  ports: CertificatePorts,
  chain: Chain,
): Awaitable<Result<{ spiffeId: string; trustDomain: string }, Refused>> {
  const named = parseX509Svid(chain.leaf);
  if (!named.ok) return err({ reason: named.error.kind });
  const { id: spiffeId, trustDomain } = named.value;
  if (!ports.settings().trustDomains.has(trustDomain)) return err({ reason: "trust_domain_unknown" });
  // SID-3-1: the path ends at an authority of the ID's own trust domain.
  return whenOk(verifyAgainstBundle(ports, chain, trustDomain), (path) => {
    const signers = checkSigners(path, trustDomain);
    return signers.ok ? ok({ spiffeId, trustDomain }) : err({ reason: signers.error.kind });
  });
}

async function verifyAgainstBundle(
  ports: CertificatePorts,
  { leaf, others, paths }: Chain,
  trustDomain: string,
): Promise<Result<readonly Certificate[], Refused>> {
  let refused: Refused = { reason: "issuer_unknown" };
  for await (const anchors of ports.bundles.anchors(trustDomain)) {
    if (!anchors.ok) return err({ reason: `bundle_${anchors.error}` });
    const path = paths.verify(leaf, others, anchors.value, ports.clock.nowSeconds());
    if (path.ok) return path;
    refused = { reason: path.error.kind };
    if (!UNKNOWN_AUTHORITY.includes(refused.reason)) break;
  }
  return err(refused);
}
