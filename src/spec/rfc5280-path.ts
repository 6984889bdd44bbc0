/**
 * RFC 5280, X.509 Certificate Profile: https://www.rfc-editor.org/rfc/rfc5280.html
 * Covers 6.1 path validation without the signatures, which are checked elsewhere, and 4.2.1.10 name constraints.
 */

import { CERTIFICATE_PATH_MAX, NAME_CHECKS_MAX } from "../limits.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { Certificate } from "./rfc5280.ts";
import type { Place } from "./rfc5280-names.ts";
import { HOST, lowerCase, mailbox } from "./rfc5280-names.ts";
import { sameBytes } from "./x690.ts";

/** `at` counts from the leaf, which is 0. */
export type PathFailure =
  | { kind: "path_too_long" }
  | { kind: "path_without_anchor" }
  | { kind: "certificate_expired"; at: number }
  | { kind: "certificate_not_yet_valid"; at: number }
  | { kind: "critical_extension_unknown"; at: number; oid: string }
  | { kind: "issuer_differs"; at: number }
  | { kind: "signer_not_ca"; at: number }
  | { kind: "signer_may_not_sign"; at: number }
  | { kind: "path_length_exceeded"; at: number }
  | { kind: "name_constraint_unjudged"; at: number }
  | { kind: "name_constraints_too_many" }
  | { kind: "name_not_permitted"; at: number }
  | { kind: "name_excluded"; at: number };

/**
 * X5S-5.1-1: what RFC 5280 6.1 demands, the signatures apart. From the leaf to the anchor, which is held to the same
 * rules: it is no more than another authority that may have expired.
 */
export function checkPath(
  path: readonly Certificate[],
  { nowSeconds }: { nowSeconds: number },
): Result<readonly Certificate[], PathFailure> {
  // x509-svid trap 5: an own limit.
  if (path.length > CERTIFICATE_PATH_MAX) return err({ kind: "path_too_long" });
  // X5S-3.2-3: an anchor does not stand for itself.
  if (path.length < 2) return err({ kind: "path_without_anchor" });
  for (const [at, certificate] of path.entries()) {
    const failure = checkCertificate(certificate, at, nowSeconds) ?? checkSigner(certificate, at, path);
    if (failure !== undefined) return err(failure);
  }
  const failure = checkNames(path);
  return failure === undefined ? ok(path) : err(failure);
}

function checkCertificate(certificate: Certificate, at: number, nowSeconds: number): PathFailure | undefined {
  const { notBeforeSeconds, notAfterSeconds, unhandledCritical } = certificate;
  // 4.1.2.5: both ends included.
  if (!(nowSeconds >= notBeforeSeconds)) return { kind: "certificate_not_yet_valid", at };
  if (!(nowSeconds <= notAfterSeconds)) return { kind: "certificate_expired", at };
  // 6.1.4 (o), 6.1.5 (f)
  const [oid] = unhandledCritical;
  return oid === undefined ? undefined : { kind: "critical_extension_unknown", at, oid };
}

function checkSigner(signer: Certificate, at: number, path: readonly Certificate[]): PathFailure | undefined {
  const signed = path[at - 1];
  if (signed === undefined) return undefined;
  // 6.1.3 (a) (4): byte for byte, so that no rule for comparing names lets one pass for another.
  if (!sameBytes(signed.issuer.der, signer.subject.der)) return { kind: "issuer_differs", at };
  // X5S-4.1-1, 6.1.4 (k)
  if (signer.basicConstraints?.ca !== true) return { kind: "signer_not_ca", at };
  // X5S-4.3-2; 6.1.4 (n) lets a signer pass that has no key usage at all, we do not.
  if (signer.keyUsage?.usages.has("keyCertSign") !== true) return { kind: "signer_may_not_sign", at };
  // 6.1.4 (l), (m): what an authority issued to itself, to roll its key over, does not count.
  const between = path.slice(1, at).filter((certificate) => !isSelfIssued(certificate)).length;
  const { pathLength = between } = signer.basicConstraints;
  return between > pathLength ? { kind: "path_length_exceeded", at } : undefined;
}

function isSelfIssued({ issuer, subject }: Certificate): boolean {
  return sameBytes(issuer.der, subject.der);
}

// --- names -------------------------------------------------------------------------------------------------------

/** X5S-4.2-1, 6.1.3 (b), (c): the names of each certificate against the constraints of all above it. */
function checkNames(path: readonly Certificate[]): PathFailure | undefined {
  let checks = 0;
  for (const [at, { nameConstraints }] of path.entries()) {
    if (nameConstraints === undefined) continue;
    // Nothing vouches for what an authority wanted to keep in bounds that we cannot draw.
    if (nameConstraints.unjudged) return { kind: "name_constraint_unjudged", at };
    const { permitted, excluded } = nameConstraints;
    for (const [below, certificate] of path.slice(0, at).entries()) {
      if (below > 0 && isSelfIssued(certificate)) continue;
      const places = placesOf(certificate);
      checks += places.length * (permitted.length + excluded.length);
      if (checks > NAME_CHECKS_MAX) return { kind: "name_constraints_too_many" };
      for (const { type, place } of places) {
        const allowed = permitted.filter((base) => base.type === type);
        const forbidden = excluded.filter((base) => base.type === type);
        if (place === undefined && allowed.length + forbidden.length === 0) continue;
        if (place === undefined || (allowed.length > 0 && !allowed.some((base) => isWithin(place, base)))) {
          return { kind: "name_not_permitted", at: below };
        }
        if (forbidden.some((base) => isWithin(place, base))) return { kind: "name_excluded", at: below };
      }
    }
  }
  return undefined;
}

const URI_HOST = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#@:]+)(?::[0-9]*)?(?:[/?#]|$)/;
const EMAIL_ADDRESS = "1.2.840.113549.1.9.1";

/** Every name of a kind that can be constrained; without a place where it cannot be told what it would be within. */
function placesOf({ subject, subjectAltNames }: Certificate): { type: Place["type"]; place?: Place }[] {
  const { uris = [], dnsNames = [], emails = [], ipAddresses = [] } = subjectAltNames ?? {};
  const at = (type: "dns" | "uri", name = "") => {
    const host = lowerCase(name);
    return HOST.test(host) ? { type, place: { type, host } } : { type };
  };
  const email = (text = "") => {
    const place = mailbox(text);
    return place === undefined ? { type: "email" as const } : { type: "email" as const, place };
  };
  return [
    ...dnsNames.map((name) => at("dns", name)),
    ...uris.map((uri) => at("uri", URI_HOST.exec(uri)?.[1])),
    ...emails.map(email),
    // Before there were alternative names, an address stood in the subject.
    ...subject.rdns
      .flatMap((rdn) => rdn.filter(({ type }) => type === EMAIL_ADDRESS))
      .map(({ text }) => email(text)),
    ...ipAddresses.map((bytes) => ({ type: "ip" as const, place: { type: "ip" as const, bytes } })),
  ];
}

function isWithin(place: Place, base: Place): boolean {
  if (place.type === "ip" || base.type === "ip") {
    return place.type === "ip" && base.type === "ip" && isInNetwork(place.bytes, base.bytes);
  }
  if (base.host === "") return true;
  if (base.type === "dns") return place.host === base.host || place.host.endsWith(`.${base.host}`);
  if (base.type === "email" && base.local !== undefined) {
    return place.type === "email" && place.local === base.local && place.host === base.host;
  }
  return base.host.startsWith(".") ? place.host.endsWith(base.host) : place.host === base.host;
}

function isInNetwork(address: Uint8Array, network: Uint8Array): boolean {
  const { length } = address;
  if (network.length !== length * 2) return false;
  return address.every((octet, index) => {
    const mask = network[length + index] ?? 0;
    return (octet & mask) === ((network[index] ?? 0) & mask);
  });
}
