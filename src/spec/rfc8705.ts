/**
 * RFC 8705, Mutual-TLS Client Authentication and Certificate-Bound Access Tokens:
 * https://www.rfc-editor.org/rfc/rfc8705.html
 * Covers 2.1 PKI method and its subject parameters, 2.2 self-signed method. Certificate paths are RFC 5280's.
 * Elsewhere: 1 flows/prove-keys.ts; 1.2 http/handler.ts; 2 flows/verify-certificate.ts, http/connections.ts,
 * http/tls.ts; 2.1 flows/verify-certificate.ts, settings/client.ts, spec/rfc4514.ts; 2.1.2 config/client-schema.ts,
 * spec/rfc4514.ts, spec/rfc5280-names.ts, spec/rfc7591.ts; 2.2 flows/verify-certificate.ts, settings/client.ts,
 * spec/rfc7591-members.ts; 2.2.2 spec/rfc7591-members.ts; 3 flows/authorize-api.ts, flows/still-covers.ts,
 * flows/token-exchange.ts, http/message.ts, policy/judge.ts; 3.1 flows/prove-keys.ts, flows/verify-certificate.ts,
 * spec/rfc7800.ts, spec/rfc9068.ts; 3.2 spec/rfc9068.ts; 3.3 spec/rfc8414.ts; 3.4 config/client-schema.ts,
 * flows/still-covers.ts, http/errors.ts, policy/binding.ts, policy/decide.ts, settings/client-metadata.ts,
 * settings/client.ts, settings/settings.ts, spec/rfc7591-members.ts; 5 settings/audiences.ts, settings/settings.ts,
 * spec/rfc8414.ts, start/listeners.ts; 6.1 flows/prove-keys.ts, http/handler.ts, http/serve.ts; 6.2
 * flows/prove-keys.ts; 6.3 policy/binding.ts; 7.3 http/tls.ts; 7.5 spec/rfc4514.ts, spec/x690.ts.
 */

import ipaddr from "ipaddr.js";
import { STRING_BYTES_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { type ExpectedAttribute, isSameName, parseDistinguishedName } from "./rfc4514.ts";
import { type Certificate, type CertificateFailure, parseCertificate } from "./rfc5280.ts";
import { lowerCase } from "./rfc5280-names.ts";
import { parseJwk } from "./rfc7517.ts";
import { isJsonObject, type Json, type JsonObject } from "./rfc8259.ts";
import { sameBytes } from "./x690.ts";

const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

// --- PKI method: the subject that a client registered --------------------------------------------------------

export const SUBJECT_PARAMETERS = [
  "tls_client_auth_subject_dn",
  "tls_client_auth_san_dns",
  "tls_client_auth_san_uri",
  "tls_client_auth_san_ip",
  "tls_client_auth_san_email",
] as const;
export type SubjectParameter = (typeof SUBJECT_PARAMETERS)[number];

export type ExpectedSubject =
  | { parameter: "tls_client_auth_subject_dn"; rdns: readonly (readonly ExpectedAttribute[])[] }
  | { parameter: "tls_client_auth_san_dns"; name: string }
  | { parameter: "tls_client_auth_san_uri"; name: string }
  | { parameter: "tls_client_auth_san_email"; name: string }
  | { parameter: "tls_client_auth_san_ip"; bytes: Uint8Array };

type SubjectFailure =
  | { kind: "subject_missing" }
  | { kind: "subject_repeated" }
  | { kind: "subject_malformed"; parameter: SubjectParameter };

/** The five parameters by name; other members beside them are ignored. */
export type SubjectMembers = { readonly [parameter in SubjectParameter]?: Json | undefined };

/** RFC8705-2.1.2-1, RFC8705-2.1-2: exactly one of the five parameters. */
export function parseSubject(metadata: SubjectMembers): Result<ExpectedSubject, SubjectFailure> {
  const [parameter, ...others] = SUBJECT_PARAMETERS.filter((name) => metadata[name] !== undefined);
  if (parameter === undefined) return err({ kind: "subject_missing" });
  if (others.length > 0) return err({ kind: "subject_repeated" });
  const value = metadata[parameter];
  const isText = typeof value === "string" && value !== "" && value.length <= STRING_BYTES_MAX;
  const subject = isText ? readSubject(parameter, value) : undefined;
  return subject === undefined ? err({ kind: "subject_malformed", parameter }) : ok(subject);
}

const DNS_NAME = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$/;
const EMAIL = /^[!-~]+@[!-?A-~]+$/;
const SPIFFE = /^spiffe:/i;

function readSubject(parameter: SubjectParameter, value: string): ExpectedSubject | undefined {
  switch (parameter) {
    case "tls_client_auth_subject_dn": {
      const rdns = parseDistinguishedName(value);
      return rdns && { parameter, rdns };
    }
    case "tls_client_auth_san_dns":
      // A wildcard is refused, because a client has one name and not a whole DNS zone.
      return DNS_NAME.test(value) ? { parameter, name: lowerCase(value) } : undefined;
    case "tls_client_auth_san_uri":
      // A SPIFFE ID is refused, because SVIDs have their own method with stricter rules.
      return URI.test(value) && !SPIFFE.test(value) ? { parameter, name: value } : undefined;
    case "tls_client_auth_san_email":
      return EMAIL.test(value) ? { parameter, name: value } : undefined;
    case "tls_client_auth_san_ip": {
      const bytes = readAddress(value);
      return bytes && { parameter, bytes };
    }
  }
}

/**
 * An address is four decimal numbers, or IPv6 without a zone, because parsers disagree about shorter and octal forms.
 */
function readAddress(text: string): Uint8Array | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return new Uint8Array(ipaddr.IPv4.parse(text).toByteArray());
  if (!ipaddr.IPv6.isValid(text) || text.includes("%")) return undefined;
  return new Uint8Array(ipaddr.IPv6.parse(text).toByteArray());
}

// --- PKI method: the certificate ----------------------------------------------------------------------------

type ClientCertificateFailure = {
  kind:
    | "client_certificate_is_ca"
    | "client_certificate_may_not_sign"
    | "client_certificate_not_for_clients"
    | "client_certificate_is_svid"
    | "client_certificate_differs";
};

/**
 * RFC8705-2.1-1, RFC8705-2-4, RFC6749-2.3.2-2: the leaf of a valid path must have the registered subject; a renewed
 * certificate with the same subject is accepted (RFC8705-2.1-5).
 */
export function checkClientCertificate(
  leaf: Certificate,
  expected: ExpectedSubject,
): Result<Certificate, ClientCertificateFailure> {
  // RFC8705-7.5-3: the certificate is not an authority's, and its key usages permit client authentication.
  if (leaf.basicConstraints?.ca === true) return err({ kind: "client_certificate_is_ca" });
  if (leaf.keyUsage !== undefined && !leaf.keyUsage.usages.has("digitalSignature")) {
    return err({ kind: "client_certificate_may_not_sign" });
  }
  if (leaf.extendedKeyUsage !== undefined && !leaf.extendedKeyUsage.includes(CLIENT_AUTH)) {
    return err({ kind: "client_certificate_not_for_clients" });
  }
  // An SVID is refused, because SVIDs have their own method with stricter rules.
  if (leaf.subjectAltNames?.uris.some((uri) => SPIFFE.test(uri))) {
    return err({ kind: "client_certificate_is_svid" });
  }
  return isSubject(leaf, expected) ? ok(leaf) : err({ kind: "client_certificate_differs" });
}

/** RFC8705-2.1.2-3: only names of the registered kind are compared; one of several may match. */
function isSubject({ subject, subjectAltNames }: Certificate, expected: ExpectedSubject): boolean {
  const { dnsNames = [], uris = [], emails = [], ipAddresses = [] } = subjectAltNames ?? {};
  switch (expected.parameter) {
    case "tls_client_auth_subject_dn":
      return isSameName(expected.rdns, subject.rdns);
    case "tls_client_auth_san_dns":
      return dnsNames.some((name) => lowerCase(name) === expected.name);
    case "tls_client_auth_san_uri":
      return uris.includes(expected.name);
    case "tls_client_auth_san_email":
      return emails.includes(expected.name);
    case "tls_client_auth_san_ip":
      // RFC8705-2.1.2-4: addresses are compared in binary form.
      return ipAddresses.some((bytes) => sameBytes(bytes, expected.bytes));
  }
}

// --- self-signed method -------------------------------------------------------------------------------------

type RegisteredCertificateFailure =
  | { kind: "registered_certificate_missing" }
  | { kind: "registered_certificate_malformed" }
  | { kind: "registered_certificate_refused"; cause: CertificateFailure["kind"] }
  | { kind: "registered_key_refused" }
  | { kind: "registered_key_differs" };

/** RFC8705-2.2.2-1: the certificate in a registered JWK. */
export function parseRegisteredCertificate(jwk: Json): Result<Certificate, RegisteredCertificateFailure> {
  const members: JsonObject = isJsonObject(jwk) ? jwk : {};
  const [first] = Array.isArray(members.x5c) ? members.x5c : [];
  if (typeof first !== "string") return err({ kind: "registered_certificate_missing" });
  const bytes = decodeBase64(first);
  if (bytes === undefined) return err({ kind: "registered_certificate_malformed" });
  const certificate = parseCertificate(bytes);
  if (!certificate.ok) {
    return err({ kind: "registered_certificate_refused", cause: certificate.error.kind });
  }
  // RFC8705-2.2.2-2, RFC7517-4.7-v1: an entry with two different keys is refused, because readers would differ in which
  // one they take.
  const key = parseJwk(jwk);
  if (!key.ok) return err({ kind: "registered_key_refused" });
  const stated: { readonly [member: string]: string | undefined } = key.value;
  const same = Object.entries(certificate.value.publicKey).every(([name, value]) => stated[name] === value);
  return same ? certificate : err({ kind: "registered_key_differs" });
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function decodeBase64(text: string): Uint8Array | undefined {
  return BASE64.test(text) ? Uint8Array.fromBase64(text) : undefined;
}

type SelfSignedFailure = {
  kind: "certificate_not_registered" | "certificate_not_yet_valid" | "certificate_expired";
};

/**
 * RFC8705-2.2-2: the whole certificate must be a registered one, because its key alone could be in other certificates.
 * No authority vouches for it (RFC8705-2.2-3), but its validity period is enforced.
 */
export function checkSelfSigned(
  presented: Certificate,
  registered: readonly Certificate[],
  { nowSeconds }: { nowSeconds: number },
): Result<Certificate, SelfSignedFailure> {
  if (!registered.some((certificate) => sameBytes(certificate.der, presented.der))) {
    return err({ kind: "certificate_not_registered" });
  }
  if (!(nowSeconds >= presented.notBeforeSeconds)) return err({ kind: "certificate_not_yet_valid" });
  if (!(nowSeconds <= presented.notAfterSeconds)) return err({ kind: "certificate_expired" });
  return ok(presented);
}
