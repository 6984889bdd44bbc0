/**
 * RFC 5280, X.509 Certificate Profile: https://www.rfc-editor.org/rfc/rfc5280.html
 * Covers 6.1 path validation without the signatures, which the caller checks, and 4.2.1.10 name constraints.
 */

import { CERTIFICATE_PATH_MAX, NAME_CHECKS_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import type { Certificate } from "./rfc5280.ts";
import { type ComparableName, HOST, lowerCase, mailbox } from "./rfc5280-names.ts";
import { sameBytes } from "./x690.ts";

/** `at` is the position in the path; the leaf is 0. */
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
 * X5S-5.1-1: checks a path from leaf to anchor as RFC 5280 6.1 requires, except for the signatures. The anchor has to
 * meet the same rules as every other authority, because it may have expired too.
 */
export function checkPath(
  path: readonly Certificate[],
  { nowSeconds }: { nowSeconds: number },
): Result<readonly Certificate[], PathFailure> {
  // This limit is our own: it bounds the work for a path.
  if (path.length > CERTIFICATE_PATH_MAX) return err({ kind: "path_too_long" });
  // X5S-3.2-3: a trust anchor itself is no leaf, so a path has at least two certificates.
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
  // 4.1.2.5: the validity period includes both of its ends.
  if (!(nowSeconds >= notBeforeSeconds)) return { kind: "certificate_not_yet_valid", at };
  if (!(nowSeconds <= notAfterSeconds)) return { kind: "certificate_expired", at };
  // 6.1.4 (o), 6.1.5 (f): a critical extension that is not supported ends the validation.
  const [oid] = unhandledCritical;
  return oid === undefined ? undefined : { kind: "critical_extension_unknown", at, oid };
}

function checkSigner(signer: Certificate, at: number, path: readonly Certificate[]): PathFailure | undefined {
  const signed = path[at - 1];
  if (signed === undefined) return undefined;
  // 6.1.3 (a) (4): names are compared byte for byte, so that two different names never count as equal.
  if (!sameBytes(signed.issuer.der, signer.subject.der)) return { kind: "issuer_differs", at };
  // X5S-4.1-1, 6.1.4 (k): every certificate above the leaf is an authority.
  if (signer.basicConstraints?.ca !== true) return { kind: "signer_not_ca", at };
  // X5S-4.3-2: `keyCertSign` is required; 6.1.4 (n) would also accept an authority without any key usage.
  if (signer.keyUsage?.usages.has("keyCertSign") !== true) return { kind: "signer_may_not_sign", at };
  // 6.1.4 (l), (m): certificates that an authority issued to itself (key rollover) do not count towards the path
  // length.
  const between = path.slice(1, at).filter((certificate) => !isSelfIssued(certificate)).length;
  const { pathLength = between } = signer.basicConstraints;
  return between > pathLength ? { kind: "path_length_exceeded", at } : undefined;
}

function isSelfIssued({ issuer, subject }: Certificate): boolean {
  return sameBytes(issuer.der, subject.der);
}

// --- names -------------------------------------------------------------------------------------------------------

/**
 * X5S-4.2-1, 6.1.3 (b), (c): compares the names of each certificate with the constraints of all certificates above it.
 */
function checkNames(path: readonly Certificate[]): PathFailure | undefined {
  let checks = 0;
  for (const [at, { nameConstraints }] of path.entries()) {
    if (nameConstraints === undefined) continue;
    // A constraint that cannot be evaluated refuses the path: it may exclude exactly this name.
    if (nameConstraints.unjudged) return { kind: "name_constraint_unjudged", at };
    const { permitted, excluded } = nameConstraints;
    for (const [below, certificate] of path.slice(0, at).entries()) {
      if (below > 0 && isSelfIssued(certificate)) continue;
      const names = comparableNames(certificate);
      checks += names.length * (permitted.length + excluded.length);
      if (checks > NAME_CHECKS_MAX) return { kind: "name_constraints_too_many" };
      for (const { type, name } of names) {
        const allowed = permitted.filter((base) => base.type === type);
        const forbidden = excluded.filter((base) => base.type === type);
        if (name === undefined && allowed.length + forbidden.length === 0) continue;
        if (name === undefined || (allowed.length > 0 && !allowed.some((base) => isWithin(name, base)))) {
          return { kind: "name_not_permitted", at: below };
        }
        if (forbidden.some((base) => isWithin(name, base))) return { kind: "name_excluded", at: below };
      }
    }
  }
  return undefined;
}

const URI_HOST = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#@:]+)(?::[0-9]*)?(?:[/?#]|$)/;
const EMAIL_ADDRESS = "1.2.840.113549.1.9.1";

/** Every name of a kind that can be constrained; without `name` when the name cannot be compared. */
function comparableNames({
  subject,
  subjectAltNames,
}: Certificate): { type: ComparableName["type"]; name?: ComparableName }[] {
  const { uris = [], dnsNames = [], emails = [], ipAddresses = [] } = subjectAltNames ?? {};
  const at = (type: "dns" | "uri", name = "") => {
    const host = lowerCase(name);
    return HOST.test(host) ? { type, name: { type, host } } : { type };
  };
  const email = (text = "") => {
    const name = mailbox(text);
    return name === undefined ? { type: "email" as const } : { type: "email" as const, name };
  };
  return [
    ...dnsNames.map((name) => at("dns", name)),
    ...uris.map((uri) => at("uri", URI_HOST.exec(uri)?.[1])),
    ...emails.map(email),
    // Older certificates have the e-mail address in the subject.
    ...subject.rdns
      .flatMap((rdn) => rdn.filter(({ type }) => type === EMAIL_ADDRESS))
      .map(({ text }) => email(text)),
    ...ipAddresses.map((bytes) => ({ type: "ip" as const, name: { type: "ip" as const, bytes } })),
  ];
}

function isWithin(name: ComparableName, base: ComparableName): boolean {
  if (name.type === "ip" || base.type === "ip") {
    return name.type === "ip" && base.type === "ip" && isInNetwork(name.bytes, base.bytes);
  }
  if (base.host === "") return true;
  if (base.type === "dns") return name.host === base.host || name.host.endsWith(`.${base.host}`);
  if (base.type === "email" && base.local !== undefined) {
    return name.type === "email" && name.local === base.local && name.host === base.host;
  }
  return base.host.startsWith(".") ? name.host.endsWith(base.host) : name.host === base.host;
}

function isInNetwork(address: Uint8Array, network: Uint8Array): boolean {
  const { length } = address;
  if (network.length !== length * 2) return false;
  return address.every((octet, index) => {
    const mask = network[length + index] ?? 0;
    return (octet & mask) === ((network[index] ?? 0) & mask);
  });
}
