/** A JWT as client assertion, signed by the client itself or by an issuer that vouches for it. */

import type { ClientAuthPorts, FetchRefused, Ports } from "../ports.ts";
import { type Awaitable, defined, err, ok, type Result, whenOk, whenReady } from "../result.ts";
import { assertionAudiences } from "../settings/audiences.ts";
import { AUTH_METHODS } from "../settings/authentication-methods.ts";
import type { Client, TrustedIssuer } from "../settings/settings.ts";
import { type Jws, type JwsHeader, parseJws } from "../spec/rfc7515.ts";
import { type Jwk, selectKey } from "../spec/rfc7517.ts";
import type { PresentedAssertion } from "../spec/rfc7521.ts";
import {
  type AssertionRule,
  checkClientAssertion,
  JWT_BEARER,
  parseClientAssertion,
} from "../spec/rfc7523.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { isSvidOf } from "../spec/spiffe/jwt-svid.ts";
import { isDisabled } from "./endings.ts";
import { findClient } from "./find-client.ts";
import type { MethodVerifier, Proof, Proven } from "./verifier.ts";
import { isOfPlatform, verifyPlatformAssertion } from "./verify-platform.ts";
import { verifySvidAssertion } from "./verify-svid.ts";

type Refused = FetchRefused;

export const verifyAssertion: MethodVerifier<PresentedAssertion> = (
  ports,
  presented,
  from,
  paths,
  endpoint,
) => {
  const settings = ports.settings();
  // RFC7523-2.2-2: the parameter is exactly one compact JWS.
  const jws = parseJws(presented.assertion);
  if (!jws.ok) return err({ reason: jws.error.kind });
  // SPCA-D-1: the SDKs of MCP name each assertion so. It is decided before any other reading, so that no JWT has two.
  if (isSvidOf(jws.value.claims, settings.trustDomains)) {
    return verifySvidAssertion(ports, presented, from, paths, endpoint);
  }
  // PLAT-D-15: a workload of a platform, unless the issuer vouches for clients and no registration matches.
  if (settings.platforms.size > 0 && isOfPlatform(settings, jws.value.claims, "client assertion")) {
    return verifyPlatformAssertion(ports, presented, from, paths, endpoint);
  }
  return verifyOwnOrVouched(ports, jws.value, presented.clientId, from.address, endpoint);
};

/** Signed by the client itself, or by an issuer that vouches for it; `requested` is the `client_id` beside it. */
function verifyOwnOrVouched(
  ports: ClientAuthPorts,
  jws: Jws,
  requested: string | undefined,
  address: string,
  endpoint: string,
): Awaitable<Result<Proven, Refused>> {
  const settings = ports.settings();
  const named = parseClientAssertion(jws);
  if (!named.ok) return err({ reason: named.error.kind });
  const { issuer, subject } = named.value;

  // PROD-2.3-14: in a self-issued assertion, issuer, subject and client are the same.
  const vouching = issuer === subject ? undefined : vouchingIssuer(ports, issuer);
  if (vouching?.ok === false) return vouching;
  if (vouching !== undefined && settings.trustedIssuers.get(issuer)?.disabledSubjects.has(subject)) {
    return err({ reason: "subject_disabled" });
  }
  // RFC7521-4.2-2, RFC7523-3-6: the assertion identifies the client; a `client_id` beside it must be the same.
  if (vouching === undefined && requested !== undefined && requested !== subject) {
    return err({ reason: "client_id_differs" });
  }
  // The claims are checked first, so that an invalid assertion causes no look-up and no fetch.
  const rule = defined<AssertionRule>({
    issuer: settings.issuer,
    audiences: assertionAudiences(settings, endpoint, subject),
    nowSeconds: ports.clock.nowSeconds(),
    skewSeconds: settings.clockSkewSeconds,
    maxAgeSeconds: vouching?.value.vouches?.maxAgeSeconds,
    singleUseSecondsMax: settings.clientAssertionSeconds,
  });
  const checked = checkClientAssertion(jws, rule);
  // RFC7523-D-1: the holder of the client's key alone is told that its assertion lives too long. CIMD-8.2-7: for one that is
  // no good, no document is fetched.
  const isKnown = vouching === undefined && !subject.startsWith("https://");
  const isLong = !checked.ok && isKnown && checked.error.kind === "jwt_lifetime_too_long";
  if (!checked.ok && !isLong) return err({ reason: checked.error.kind });

  const read: ReadAssertion = { jws, issuer, checked, requested };
  const proven = whenOk(vouching ?? clientItself(ports, subject, address), (signer) =>
    whenOk(signer.key(jws), (key) =>
      whenOk(prove(ports, signer, key, read), (proven) =>
        vouching === undefined
          ? ok(proven)
          : // POLICY-D-20
            whenReady(isDisabled(ports, { iss: issuer, sub: subject }), (disabled) =>
              disabled ? err({ reason: "subject_disabled" as const }) : ok(proven),
            ),
      ),
    ),
  );
  if (!isLong) return proven;
  return whenReady(proven, (one): Result<Proven, Refused> => {
    const isTold = !one.ok && one.error.reason === "assertion_lives_too_long";
    return isTold ? one : err({ reason: "jwt_lifetime_too_long" });
  });
}

/** Claims that were checked, of an assertion whose signature was not. */
type ReadAssertion = {
  jws: Jws;
  issuer: string;
  checked: ReturnType<typeof checkClientAssertion>;
  requested: string | undefined;
};

/** What the assertion proves if it is signed with this key of the signer. */
function prove(
  ports: ClientAuthPorts,
  signer: Signer,
  key: Jwk,
  { jws, issuer, checked, requested }: ReadAssertion,
): Result<Proven, Refused> {
  if (!ports.verifier.verify(jws, key)) return err({ reason: "signature_invalid" });
  if (!checked.ok) return err({ reason: "assertion_lives_too_long" });
  const { audience, jti, expiresAtSeconds } = checked.value;
  const { kid, typ } = jws.header;
  const client = signer.client(jws.claims, requested);
  if (!client.ok) return client;
  const { clientId, auth, assertionAudience } = client.value;
  const settings = ports.settings();
  // STU-D-3: known of a client with a voucher only now.
  if (assertionAudience !== undefined && audience !== settings.issuer)
    return err({ reason: "jwt_audience_refused" });
  // RFC7523-3-14: the `jti` is kept until the assertion has expired on the slowest clock.
  const endSeconds = expiresAtSeconds + settings.clockSkewSeconds;
  const single = jti !== undefined && !signer.vouches?.reusable;
  return ok(
    defined<Proven>({
      clientId,
      method: auth.method,
      record: client.value,
      proof: defined<Proof>({ aud: audience, kid, jti, typ }),
      spends: single ? { kind: "jti_fresh", issuer, jti, expiresAtSeconds: endSeconds } : undefined,
    }),
  );
}

/** PROD-2.3-12: whose keys may verify the assertion, and the client that a valid one proves. */
type Signer = {
  key(jws: Jws): Awaitable<Result<Jwk, Refused>>;
  client(claims: JsonObject, requested: string | undefined): Result<Client, Refused>;
  vouches?: NonNullable<TrustedIssuer["vouches"]>;
};

function clientItself(
  ports: ClientAuthPorts,
  clientId: string,
  address: string,
): Awaitable<Result<Signer, Refused>> {
  return whenOk(findClient(ports, clientId, address), (client): Result<Signer, Refused> => {
    // RFC6749-2.3.1-5: a client may use only the method that it is registered for.
    const { auth } = client;
    if (AUTH_METHODS[auth.method].presented !== JWT_BEARER || "vouchers" in auth) {
      return err({ reason: "method_not_registered" });
    }
    return ok({ key: ({ header }) => keyOf(ports, client, header, address), client: () => ok(client) });
  });
}

/** PROD-2.2-14, CIMD-8.2-3: from the record, or from the URL in the record. */
function keyOf(
  ports: Pick<Ports, "clientKeys" | "fetchedKeys">,
  { clientId, auth }: Client,
  header: JwsHeader,
  address: string,
): Awaitable<Result<Jwk, Refused>> {
  if ("keys" in auth) {
    const key = selectKey(auth.keys, header);
    return key.ok ? key : err({ reason: key.error.kind });
  }
  if ("keySet" in auth) return ports.fetchedKeys.key(auth.keySet, header, address);
  return whenReady(ports.clientKeys.key(clientId, header), (key) =>
    key.ok ? key : err({ reason: `client_${key.error}` }),
  );
}

/** PROD-2.3-16: a trusted issuer vouches only for clients that are configured for it. */
function vouchingIssuer(ports: Pick<Ports, "settings" | "issuers">, name: string): Result<Signer, Refused> {
  const { trustedIssuers, vouchedClients } = ports.settings();
  const issuer = trustedIssuers.get(name);
  if (issuer?.vouches === undefined) return err({ reason: "issuer_does_not_vouch" });
  const { algorithms, vouches } = issuer;
  return ok({
    vouches,
    key({ header }) {
      if (!algorithms.includes(header.alg)) return err({ reason: "jwt_algorithm_refused" });
      return whenReady(ports.issuers.key(name, header), (key) =>
        key.ok ? key : err({ reason: `issuer_${key.error}` }),
      );
    },
    client(claims, requested) {
      const fitting = (vouchedClients.get(name) ?? []).filter(
        (client) => isVouchedFor(client, name, claims) && (requested ?? client.clientId) === client.clientId,
      );
      const [client, another] = fitting;
      if (client === undefined) return err({ reason: "client_not_vouched_for" });
      return another === undefined ? ok(client) : err({ reason: "client_ambiguous" });
    },
  });
}

function isVouchedFor({ auth }: Client, issuer: string, claims: JsonObject): boolean {
  if (!("vouchers" in auth)) return false;
  return auth.vouchers.some(
    (voucher) =>
      voucher.issuer === issuer && [...voucher.claims].every(([name, value]) => claims[name] === value),
  );
}
