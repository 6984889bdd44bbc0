/**
 * RFC 9440, Client-Cert HTTP Header Field: https://www.rfc-editor.org/rfc/rfc9440.html
 * Covers 2.1 encoding, 2.2 Client-Cert, 2.3 Client-Cert-Chain, with RFC 8941 3.3.5 and 4.2.7 Byte Sequences. The caller
 * reads these fields only from the proxy that may send them (RFC9440-4-2).
 * Elsewhere: 2.3 settings/proxy-forms.ts; 2.4 http/proxy.ts; 4 http/message.ts, http/proxy.ts.
 */

import { CERTIFICATE_BYTES_MAX, CERTIFICATES_SENT_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { stripBlanks } from "./rfc9110.ts";

/** RFC9440-2.3-7: several lines of a field come as one text, joined by commas; undefined without the field. */
export type ClientCertFields = { clientCert: string | undefined; chain: string | undefined };

/** The certificate in DER, which is not parsed yet. */
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

/** RFC9440-2.4-3: undefined without both fields, when the client presented no certificate. */
export function parseClientCert(
  fields: ClientCertFields,
): Result<ForwardedCertificates | undefined, ClientCertFailure> {
  if (fields.clientCert === undefined) {
    // RFC9440-2.3-4: a chain without a leaf is refused.
    return fields.chain === undefined ? ok(undefined) : err({ kind: "client_cert_missing" });
  }
  const [value = "", ...others] = fields.clientCert.split(",", 2);
  const leaf = parseByteSequence(stripBlanks(value, " "));
  if (!leaf.ok) return leaf;
  // RFC9440-2.2-3: the field is sent once, with one value; a Byte Sequence never contains a comma.
  if (others.length > 0) return err({ kind: "client_cert_repeated" });
  const chain = parseChain(fields.chain ?? "");
  return chain.ok ? ok({ leaf: leaf.value, chain: chain.value }) : chain;
}

/** RFC9440-2.3-1: the field is optional. */
function parseChain(text: string): Result<Uint8Array[], ClientCertFailure> {
  const chain: Uint8Array[] = [];
  const list = stripBlanks(text, " ");
  if (list === "") return ok(chain);
  const members = list.split(",", CERTIFICATES_SENT_MAX);
  // This limit is our own, as in the TLS handshake: CERTIFICATES_SENT_MAX certificates with the leaf.
  if (members.length === CERTIFICATES_SENT_MAX) return err({ kind: "client_cert_chain_too_long" });
  // RFC9440-2.3-3: the order is that of the TLS handshake.
  for (const member of members) {
    // RFC9440-2.3-2: every member is a Byte Sequence, which never contains a comma.
    const bytes = parseByteSequence(stripBlanks(member));
    if (!bytes.ok) {
      const malformed = bytes.error.kind === "client_cert_malformed";
      return err({ kind: malformed ? "client_cert_chain_malformed" : bytes.error.kind });
    }
    chain.push(bytes.value);
  }
  return ok(chain);
}

/** The padding is complete or absent. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

/**
 * RFC9440-2.1-1, RFC8941-4.2.7-1: base64 between colons, without line feeds, blanks or characters of other alphabets,
 * and without parameters, because RFC 9440 defines none.
 */
function parseByteSequence(text: string): Result<Uint8Array, ClientCertFailure> {
  const base64 = text.slice(1, -1);
  if (text.length < 2 || text.at(0) !== ":" || text.at(-1) !== ":" || !BASE64.test(base64)) {
    return err({ kind: "client_cert_malformed" });
  }
  // RFC8941-4.2.7-2: missing padding and pad bits that are not zero are accepted.
  const bytes = Uint8Array.fromBase64(base64);
  if (bytes.length === 0) return err({ kind: "client_cert_malformed" });
  // RFC8941-3.3.5-1: a reader must support 16,384 octets, which is also our limit for a certificate.
  return bytes.length > CERTIFICATE_BYTES_MAX ? err({ kind: "client_cert_too_large" }) : ok(bytes);
}
