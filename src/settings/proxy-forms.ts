/**
 * The forms in which proxies write a client's certificate into a header field, in one table: RFC 9440, and those of
 * nginx, Envoy and Traefik, which differ in escaping and in whether the intermediates come with it. The form is that of
 * the configuration and is never guessed from a value (PXC-D-1).
 */
import { CERTIFICATE_BYTES_MAX, CERTIFICATES_SENT_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { type ClientCertFailure, type ForwardedCertificates, parseClientCert } from "../spec/rfc9440.ts";

type Failure =
  | ClientCertFailure
  | { kind: "client_cert_form_differs" | "client_cert_left_out" | "client_cert_contradicts" };
type Read<T = ForwardedCertificates> = Result<T, Failure>;

/** SHA-256 in base64url. */
type Sha256 = (data: Uint8Array) => string;

type Form = {
  /** The field that the proxy sets unless `proxy.field` names another one. */
  field: string;
  /** Whether the form has no place for the intermediates of a client. */
  leafAlone: boolean;
  /** How a value in this form begins, so that a value in another form than the configured one is told as that. */
  begins: RegExp;
  parse(value: string, chain: string | undefined, sha256: Sha256): Read;
};

/** PXC-D-1: `alb` is none of them, because that balancer shows no certificate by which it could be known (PXC-D-3). */
export const PROXY_FORMS = {
  rfc9440: { field: "Client-Cert", leafAlone: false, begins: /^:/, parse: parseRfc9440 },
  "escaped-pem": {
    field: "SSL-Client-Cert",
    leafAlone: true,
    begins: /^-----BEGIN(?:%20| )/,
    parse: parseEscapedPem,
  },
  xfcc: {
    field: "X-Forwarded-Client-Cert",
    leafAlone: false,
    begins: /^(?:(?:by|hash|cert|chain|subject|uri|dns)=|[[{])/i,
    parse: parseXfcc,
  },
  "base64-list": {
    field: "X-Forwarded-Tls-Client-Cert",
    leafAlone: false,
    begins: /^MI[A-Z]/,
    parse: parseBase64List,
  },
} as const satisfies Record<string, Form>;

export type ProxyForm = keyof typeof PROXY_FORMS;
export const PROXY_FORM_NAMES = Object.keys(PROXY_FORMS) as ProxyForm[];

/** RFC 9440 has a field of its own for the intermediates, which is named after that of the leaf. */
export const chainFieldOf = (field: string): string => `${field}-Chain`;

/** PXC-D-14: the fields in which proxies tell of certificates, but for that of the listener; no value of them is read. */
export const otherFields = (field: string): readonly string[] =>
  KNOWN_FIELDS.filter(
    (name) => ![field, chainFieldOf(field)].some((own) => own.toLowerCase() === name.toLowerCase()),
  );

const KNOWN_FIELDS: readonly string[] = [
  ...PROXY_FORM_NAMES.map((form) => PROXY_FORMS[form].field),
  chainFieldOf(PROXY_FORMS.rfc9440.field),
  "X-Forwarded-Tls-Client-Cert-Info",
  "X-Amzn-Mtls-Clientcert",
  "X-Amzn-Mtls-Clientcert-Leaf",
  "X-Client-Cert",
  "X-SSL-Cert",
  "X-SSL-Client-Cert",
];

/** Fields of proxies that tell a part of a certificate: any holder of the public certificate knows it as well. */
const PARTS =
  /-(?:info|subject|issuer|s-dn|i-dn|dn|cn|spki|serial|serial-number|fingerprint|thumbprint|hash|sha1|sha256|san|uri|dns|verify|validity)$/i;
/** Fields that this server, HTTP or the network before the proxy gives another meaning. */
const TAKEN =
  /^(?:host|authorization|dpop|cookie|origin|referer|connection|te|upgrade|date|via|user-agent|forwarded|traceparent|x-forwarded-(?:for|host|proto)|(?:accept|content|transfer|access-control|sec|x-amzn-mtls)-?.*)$/i;

/** Why a field cannot carry the client's certificate; undefined for one that can. */
export function whyNotField(field: string): string | undefined {
  if (!/^[A-Za-z][A-Za-z0-9-]*$/.test(field)) {
    // PXC-D-4: one spelling is known; proxies and servers fold other characters into a hyphen, each in its own way.
    return "is not a name of letters, digits and hyphens";
  }
  if (/^x-amzn-mtls-/i.test(field)) return SHOWS_NO_CERTIFICATE;
  if (PARTS.test(field)) {
    return "carries less than a certificate, which proves nothing: let the proxy forward the whole certificate, and name its field";
  }
  return TAKEN.test(field) ? "is a field with another meaning: let the proxy use one of its own" : undefined;
}

export const SHOWS_NO_CERTIFICATE =
  "is of a balancer that shows no certificate of its own: let it pass TLS through to `mtls`, or put nginx, HAProxy, Apache or Envoy in its place";

/** The certificates of the client in this form; undefined if it has shown none. */
export function readForwarded(
  form: ProxyForm,
  [value, chain]: readonly (string | undefined)[],
  sha256: Sha256,
): Read<ForwardedCertificates | undefined> {
  // RFC9440-2.3-4: a chain without a leaf is refused, also an empty one.
  const leafless = form === "rfc9440" && (value === undefined ? chain !== undefined : (chain ?? "") !== "");
  // PXC-D-11: some proxies write an empty value, or the colons alone, where the client has no certificate.
  if (value === undefined || value === "" || value === "::") {
    return leafless ? err({ kind: "client_cert_missing" }) : ok(undefined);
  }
  const read = PROXY_FORMS[form].parse(value, chain, sha256);
  if (read.ok || read.error.kind !== "client_cert_malformed") return read;
  const other = PROXY_FORM_NAMES.find((one) => PROXY_FORMS[one].begins.test(value));
  // A PEM that is not escaped begins like its own form, and is another one.
  const raw = value.startsWith("-----BEGIN ");
  return other !== undefined && (other !== form || raw) ? err({ kind: "client_cert_form_differs" }) : read;
}

function parseRfc9440(value: string, chain: string | undefined): Read {
  const read = parseClientCert({ clientCert: value, chain });
  if (!read.ok) return read;
  return read.value === undefined ? err({ kind: "client_cert_missing" }) : ok(read.value);
}

/** nginx: `$ssl_client_escaped_cert`. PXC-D-4: a comma separates field lines, because it is escaped within a value. */
function parseEscapedPem(value: string): Read {
  if (value.includes(",")) return err({ kind: "client_cert_repeated" });
  const blocks = readEscapedPem(value);
  if (!blocks.ok) return blocks;
  return blocks.value.length > 1 ? err({ kind: "client_cert_repeated" }) : asChain(blocks.value);
}

/** Traefik, and the bare base64 of HAProxy: base64 in the order of the handshake. PXC-D-10: without blanks or escapes. */
function parseBase64List(value: string): Read {
  // PXC-D-4: two field lines are joined by a comma and a blank, which the list itself never has.
  if (value.includes(", ")) return err({ kind: "client_cert_repeated" });
  const members = value.split(",", CERTIFICATES_SENT_MAX + 1);
  return readAll(members);
}

const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`;
const PAIR = new RegExp(`([A-Za-z]+)=(${QUOTED}|[^",;]*)(;|$)`, "y");
/** The members that are read, and of which there is one; all others are what the certificate itself says (PXC-D-8). */
const MEMBERS: ReadonlySet<string> = new Set(["cert", "chain", "hash"]);

/** Envoy's x-forwarded-client-cert, with one element: several are those of several proxies, or of the client. */
function parseXfcc(value: string, _chain: string | undefined, sha256: Sha256): Read {
  // PXC-D-9: the same in JSON is another form.
  if (/^[[{]/.test(value)) return err({ kind: "client_cert_form_differs" });
  if (/[^\t\x20-\x7e]/.test(value)) return err({ kind: "client_cert_malformed" });
  const members = new Map<string, string>();
  PAIR.lastIndex = 0;
  for (let at = 0; at < value.length; at = PAIR.lastIndex) {
    const [, key = "", text = "", end] = PAIR.exec(value) ?? [];
    if (end === undefined) {
      // PXC-D-4: a comma outside of quotes begins another element, so that the first one may be the client's own.
      const several = new RegExp(`^(?:[^",]|${QUOTED})*,`).test(value);
      return err({ kind: several ? "client_cert_repeated" : "client_cert_malformed" });
    }
    const name = key.toLowerCase();
    if (!MEMBERS.has(name)) continue;
    if (members.has(name)) return err({ kind: "client_cert_repeated" });
    members.set(name, text);
  }
  return judgeXfcc(members, sha256);
}

function judgeXfcc(members: ReadonlyMap<string, string>, sha256: Sha256): Read {
  const [cert, chain] = ["cert", "chain"].map((name) => members.get(name));
  const hash = members.get("hash")?.replace(/^"(.*)"$/, "$1");
  // PXC-D-8: a digest or a name is public, and says nothing that could be validated.
  if (cert === undefined && chain === undefined) return err({ kind: "client_cert_left_out" });
  const lists: Uint8Array[][] = [];
  for (const text of [cert, chain]) {
    if (text === undefined) continue;
    // Envoy quotes both; without quotes the text may be the end of another member.
    if (!/^"[^"\\]*"$/.test(text)) return err({ kind: "client_cert_malformed" });
    const blocks = readEscapedPem(text.slice(1, -1));
    if (!blocks.ok) return blocks;
    lists.push(blocks.value);
  }
  const [first = [], second = first] = lists;
  if (cert !== undefined && first.length > 1) return err({ kind: "client_cert_repeated" });
  const [leaf] = first;
  const digest = leaf && sha256(leaf);
  const same = second[0] !== undefined && sha256(second[0]) === digest;
  if (!same || (hash !== undefined && base64urlOfHex(hash) !== digest)) {
    return err({ kind: "client_cert_contradicts" });
  }
  return asChain(second);
}

const base64urlOfHex = (hex: string): string | undefined =>
  /^[0-9a-f]{64}$/i.test(hex)
    ? Uint8Array.fromHex(hex).toBase64({ alphabet: "base64url", omitPadding: true })
    : undefined;

const BLOCK =
  /-----BEGIN CERTIFICATE-----\r?\n((?:[A-Za-z0-9+/]+={0,2}\r?\n)+)-----END CERTIFICATE-----(?:\r?\n|$)/y;

/** PXC-D-6: one PEM block after another (RFC 7468), with nothing before, between or behind them. */
function readEscapedPem(value: string): Read<Uint8Array[]> {
  // PXC-D-5: it is decoded once, and a plus is a plus; what a field cannot carry in clear is refused before that.
  if (!/^(?:[!-$&-~]|%[0-9A-Fa-f]{2})+$/.test(value)) return err({ kind: "client_cert_malformed" });
  const pem = value.replaceAll(/%(..)/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  const bodies: string[] = [];
  BLOCK.lastIndex = 0;
  for (let at = 0; at < pem.length; at = BLOCK.lastIndex) {
    const [, body] = BLOCK.exec(pem) ?? [];
    if (body === undefined) return err({ kind: "client_cert_malformed" });
    bodies.push(body.replaceAll(/[\r\n]/g, ""));
  }
  const read = readAll(bodies);
  return read.ok ? ok([read.value.leaf, ...read.value.chain]) : read;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** The limits are those of a handshake: CERTIFICATES_SENT_MAX with the leaf, CERTIFICATE_BYTES_MAX each (PXC-D-7). */
function readAll(members: readonly string[]): Read {
  if (members.length > CERTIFICATES_SENT_MAX) return err({ kind: "client_cert_chain_too_long" });
  const all: Uint8Array[] = [];
  for (const text of members) {
    if (text === "" || !BASE64.test(text)) return err({ kind: "client_cert_malformed" });
    const bytes = Uint8Array.fromBase64(text);
    if (bytes.length > CERTIFICATE_BYTES_MAX) return err({ kind: "client_cert_too_large" });
    // Text such as NONE is base64 as well: a certificate in DER begins with a SEQUENCE.
    if (bytes[0] !== 0x30) return err({ kind: "client_cert_malformed" });
    all.push(bytes);
  }
  return asChain(all);
}

function asChain([leaf, ...chain]: readonly Uint8Array[]): Read {
  return leaf === undefined ? err({ kind: "client_cert_malformed" }) : ok({ leaf, chain });
}
