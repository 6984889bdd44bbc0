/**
 * TLS of the listeners: versions, suites, and what a handshake may leave behind.
 * RFC 8705, 7.3 versions and suites: https://www.rfc-editor.org/rfc/rfc8705.html
 */
import { constants, X509Certificate } from "node:crypto";
import type { SecureContextOptions } from "node:tls";

// RFC8705-7.3-1 (BCP 195): only suites with forward secrecy and authenticated encryption are offered.
const CIPHERS = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

/**
 * Every option is given each time, because an option that is left out falls back to Node's default when a context is
 * replaced.
 */
export const secureContext = (key: string, cert: string): SecureContextOptions => ({
  key,
  cert,
  // No anchors are given, so that a client with several certificates gets no list of authorities to choose by, and Node
  // trusts none.
  ca: [],
  ciphers: CIPHERS,
  minVersion: "TLSv1.2",
  // RFC8705-2-2: a resumed session would bring back a certificate that was not shown on this connection.
  secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
});

/** The end of the first certificate of a chain in PEM, as RFC 3339 writes times. */
export const endOfCertificate = (cert: string): string => new X509Certificate(cert).validToDate.toISOString();
