/**
 * RFC 9440, Client-Cert HTTP Header Field: https://www.rfc-editor.org/rfc/rfc9440.html
 * Covers 2.1 encoding, 2.2 Client-Cert, 2.3 Client-Cert-Chain, with RFC 8941 3.3.5 and 4.2.7 Byte Sequences. Whether the
 * peer is the proxy that may send these fields is decided before they are read (RFC9440-4-2).
 */

import { CERTIFICATE_BYTES_MAX, CERTIFICATES_SENT_MAX } from "../limits.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";

/** The values of each field line as received, in order. */
export type ClientCertFields = { clientCert: readonly string[]; chain: readonly string[] };

/** DER, not read yet. */
export type ForwardedCertificates = { leaf: Uint8Array; chain: readonly Uint8Array[] };

export type ClientCertFailure = {
  kind:
    | "client_cert_missing"
    | "client_cert_repeated"
    | "client_cert_malformed"
    | "client_cert_too_large"
    | "client_cert_chain_malformed"
    | "client_cert_chain_too_long";
};

/** RFC9440-2.4-3: nothing at all means that the client showed no certificate. */
export function parseClientCert(
  fields: ClientCertFields,
): Result<ForwardedCertificates | undefined, ClientCertFailure> {
  const [value, ...others] = fields.clientCert;
  if (value === undefined) {
    // RFC9440-2.3-4
    return fields.chain.length === 0 ? ok(undefined) : err({ kind: "client_cert_missing" });
  }
  // RFC9440-2.2-3
  if (others.length > 0) return err({ kind: "client_cert_repeated" });
  const leaf = parseByteSequence(trim(value, " "));
  if (!leaf.ok) return leaf;
  const chain = parseChain(fields.chain);
  return chain.ok ? ok({ leaf: leaf.value, chain: chain.value }) : chain;
}

/** RFC9440-2.3-7: several lines are one list. RFC9440-2.3-1: or there is none. */
function parseChain(lines: readonly string[]): Result<Uint8Array[], ClientCertFailure> {
  const chain: Uint8Array[] = [];
  const list = trim(lines.join(","), " ");
  if (list === "") return ok(chain);
  const members = list.split(",", CERTIFICATES_SENT_MAX);
  // x509-svid trap 5: ten certificates with the leaf.
  if (members.length === CERTIFICATES_SENT_MAX) return err({ kind: "client_cert_chain_too_long" });
  // RFC9440-2.3-3: in the order of TLS.
  for (const member of members) {
    // RFC9440-2.3-2: each of them; no Byte Sequence holds a comma, and nothing else may stand here.
    const bytes = parseByteSequence(trim(member, " \t"));
    if (!bytes.ok) {
      const malformed = bytes.error.kind === "client_cert_malformed";
      return err({ kind: malformed ? "client_cert_chain_malformed" : bytes.error.kind });
    }
    chain.push(bytes.value);
  }
  return ok(chain);
}

function trim(text: string, blanks: string): string {
  let [start, end] = [0, text.length];
  while (start < end && blanks.includes(text.charAt(start))) start++;
  while (end > start && blanks.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

/** Padding whole, or left out. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

/**
 * RFC9440-2.1-1, RFC8941-4.2.7-1: base64 between colons, without a line feed, a blank or another alphabet, and without
 * parameters, of which there are none.
 */
function parseByteSequence(text: string): Result<Uint8Array, ClientCertFailure> {
  const base64 = text.slice(1, -1);
  if (text.length < 2 || text.at(0) !== ":" || text.at(-1) !== ":" || !BASE64.test(base64)) {
    return err({ kind: "client_cert_malformed" });
  }
  // RFC8941-4.2.7-2: no complaint about padding that is missing or bits of it that are set.
  const bytes = Uint8Array.fromBase64(base64);
  if (bytes.length === 0) return err({ kind: "client_cert_malformed" });
  // RFC8941-3.3.5-1: the least that a reader must take is the most that a certificate may have.
  return bytes.length > CERTIFICATE_BYTES_MAX ? err({ kind: "client_cert_too_large" }) : ok(bytes);
}
