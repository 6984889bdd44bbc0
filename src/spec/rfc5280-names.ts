/**
 * RFC 5280, X.509 Certificate Profile: https://www.rfc-editor.org/rfc/rfc5280.html
 * Covers the names of a certificate: 4.1.2.4 issuer and subject, 4.2.1.6 subject alternative names, 4.2.1.10
 * constraints.
 */

import { defined } from "../result.ts";
import { decodeUtf8 } from "./rfc8259.ts";
import * as der from "./x690.ts";
import { childrenOf, type Der, readAscii, readOid } from "./x690.ts";

export type Attribute = {
  type: string;
  /** Absent for T61String and the other old encodings, because they can be read in more than one way. */
  text?: string;
  value: Der;
};
export type Name = { der: Uint8Array; rdns: readonly (readonly Attribute[])[] };

export type SubjectAltNames = {
  critical: boolean;
  uris: readonly string[];
  dnsNames: readonly string[];
  emails: readonly string[];
  /** An address has 4 or 16 bytes. */
  ipAddresses: readonly Uint8Array[];
  /** The number of names of other kinds. */
  others: number;
};

/**
 * A name in the form in which it is compared. `host` is in lower case; only in a constraint it may be empty or begin
 * with a dot.
 */
export type ComparableName =
  | { type: "dns" | "uri"; host: string }
  | { type: "email"; local?: string; host: string }
  | { type: "ip"; bytes: Uint8Array };

export type NameConstraints = {
  permitted: readonly ComparableName[];
  excluded: readonly ComparableName[];
  /** Whether there are constraints on kinds of names that this reader does not compare. */
  unjudged: boolean;
};

// --- issuer and subject -------------------------------------------------------------------------------------

/** 4.1.2.4: reads a Name, which may be empty; undefined if it is malformed. */
export function readName(node: Der | undefined): Name | undefined {
  if (node?.tag !== der.SEQUENCE) return undefined;
  const rdns: Attribute[][] = [];
  for (const set of node.children) {
    const rdn = childrenOf(set, der.SET).map(readAttribute);
    if (rdn.length === 0 || !rdn.every((attribute) => attribute !== undefined)) return undefined;
    rdns.push(rdn);
  }
  return { der: node.bytes, rdns };
}

function readAttribute(node: Der): Attribute | undefined {
  const [id, value, ...more] = childrenOf(node, der.SEQUENCE);
  const type = readOid(id);
  if (type === undefined || value === undefined || more.length > 0) return undefined;
  return defined({ type, value, text: readText(value) });
}

const PRINTABLE = /^[A-Za-z0-9 '()+,./:=?-]*$/;

function readText({ tag, content }: Der): string | undefined {
  switch (tag) {
    case der.UTF8_STRING: {
      const text = decodeUtf8(content);
      return text.ok ? text.value : undefined;
    }
    case der.PRINTABLE_STRING: {
      const text = readAscii(content);
      return text !== undefined && PRINTABLE.test(text) ? text : undefined;
    }
    case der.IA5_STRING:
      return readAscii(content);
    default:
      return undefined;
  }
}

// --- subject alternative names ------------------------------------------------------------------------------

const EMAIL_NAME = 0x81;
const DNS_NAME = 0x82;
const URI_NAME = 0x86;
const IP_NAME = 0x87;
/** These kinds are counted and not read: other name, X.400 address, directory name, EDI party name, registered ID. */
const OTHER_NAMES: readonly number[] = [0xa0, 0xa3, 0xa4, 0xa5, 0x88];

/**
 * 4.2.1.6: reads names by their tag. A formatted text is never split, because one name can be made to look like two
 * there (RFC8705-2.1.2-3).
 */
export function readSubjectAltNames(
  node: Der,
  critical: boolean,
): { subjectAltNames: SubjectAltNames } | undefined {
  const uris: string[] = [];
  const dnsNames: string[] = [];
  const emails: string[] = [];
  const ipAddresses: Uint8Array[] = [];
  let others = 0;
  const texts: ReadonlyMap<number, string[]> = new Map([
    [EMAIL_NAME, emails],
    [DNS_NAME, dnsNames],
    [URI_NAME, uris],
  ]);
  const names = childrenOf(node, der.SEQUENCE);
  for (const { tag, content } of names) {
    const list = texts.get(tag);
    if (list !== undefined) {
      const text = readAscii(content);
      if (text === undefined) return undefined;
      list.push(text);
    } else if (tag === IP_NAME) {
      if (content.length !== 4 && content.length !== 16) return undefined;
      ipAddresses.push(content);
    } else if (OTHER_NAMES.includes(tag)) {
      others++;
    } else {
      return undefined;
    }
  }
  if (names.length === 0) return undefined;
  return { subjectAltNames: { critical, uris, dnsNames, emails, ipAddresses, others } };
}

// --- name constraints ---------------------------------------------------------------------------------------

const PERMITTED = 0xa0;
const EXCLUDED = 0xa1;

/** 4.2.1.10: reads name constraints; undefined for a malformed extension. */
export function readNameConstraints(node: Der): { nameConstraints: NameConstraints } | undefined {
  if (node.tag !== der.SEQUENCE || node.children.length === 0) return undefined;
  const constraints = {
    permitted: [] as ComparableName[],
    excluded: [] as ComparableName[],
    unjudged: false,
  };
  let last = 0;
  for (const { tag, children } of node.children) {
    if ((tag !== PERMITTED && tag !== EXCLUDED) || tag <= last || children.length === 0) return undefined;
    last = tag;
    for (const subtree of children) {
      // The profile does not use minimum and maximum, and DER leaves out the default, which is zero.
      const [base, ...bounds] = childrenOf(subtree, der.SEQUENCE);
      if (base === undefined || bounds.length > 0) return undefined;
      if (OTHER_NAMES.includes(base.tag)) {
        constraints.unjudged = true;
        continue;
      }
      const name = readBase(base);
      if (name === undefined) return undefined;
      constraints[tag === PERMITTED ? "permitted" : "excluded"].push(name);
    }
  }
  return { nameConstraints: constraints };
}

const LABELS = "[a-z0-9_*-]+(?:\\.[a-z0-9_*-]+)*";
export const HOST = new RegExp(`^${LABELS}$`);
/** A host with a leading dot covers only the names below it; an empty one covers every name. */
const HOST_BASE = new RegExp(`^(?:\\.?${LABELS})?$`);
const DNS_BASE = new RegExp(`^(?:${LABELS})?$`);
/** Quoted local parts are refused, because they would give one mailbox several spellings. */
const MAILBOX = /^([A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+)@([^@]+)$/;

function readBase({ tag, content }: Der): ComparableName | undefined {
  if (tag === IP_NAME) return isNetwork(content) ? { type: "ip", bytes: content } : undefined;
  const text = readAscii(content);
  if (text === undefined) return undefined;
  const host = lowerCase(text);
  switch (tag) {
    case DNS_NAME:
      return DNS_BASE.test(host) ? { type: "dns", host } : undefined;
    case URI_NAME:
      return HOST_BASE.test(host) ? { type: "uri", host } : undefined;
    case EMAIL_NAME:
      return HOST_BASE.test(host) ? { type: "email", host } : mailbox(text);
    default:
      return undefined;
  }
}

/** The value is an address and a mask of one bits followed by zero bits. */
function isNetwork(bytes: Uint8Array): boolean {
  if (bytes.length !== 8 && bytes.length !== 32) return false;
  const mask = [...bytes.subarray(bytes.length / 2)].map((octet) => octet.toString(2).padStart(8, "0"));
  return /^1*0*$/.test(mask.join(""));
}

/** The host in lower case; only ASCII letters are changed. */
export const lowerCase = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** The mailbox with its host in lower case; undefined if the text is no mailbox. */
export function mailbox(text: string): ComparableName | undefined {
  const [, local, domain = ""] = MAILBOX.exec(text) ?? [];
  const host = lowerCase(domain);
  return local !== undefined && HOST.test(host) ? { type: "email", local, host } : undefined;
}
