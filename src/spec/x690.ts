/**
 * ITU-T X.690 (02/2021), Distinguished Encoding Rules: https://www.itu.int/rec/T-REC-X.690
 * Covers 8.1 to 8.5, 8.6, 8.8, 8.19, 10.1, 10.2, 11.1, 11.2, 11.6 to 11.8 as far as certificates need them: each value
 * has one encoding, so that two readers of a certificate cannot read it differently.
 */

import { DER_DEPTH_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";

export type Der = {
  /** The identifier octet: class, form and number. */
  tag: number;
  /** The whole encoding, identifier and length included. */
  bytes: Uint8Array;
  content: Uint8Array;
  /** The values inside, if the form is constructed. */
  children: readonly Der[];
};

export type DerFailure = {
  kind:
    | "der_truncated"
    | "der_trailing"
    | "der_tag_refused"
    | "der_length_malformed"
    | "der_value_malformed"
    | "der_too_deep";
};

export const BOOLEAN = 0x01;
export const INTEGER = 0x02;
const BIT_STRING = 0x03;
export const OCTET_STRING = 0x04;
export const NULL = 0x05;
const OBJECT_IDENTIFIER = 0x06;
export const ENUMERATED = 0x0a;
export const UTF8_STRING = 0x0c;
export const PRINTABLE_STRING = 0x13;
export const IA5_STRING = 0x16;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
export const SEQUENCE = 0x30;
export const SET = 0x31;

const CLASS = 0xc0;
const CONSTRUCTED = 0x20;
const NUMBER = 0x1f;
const COLLECTIONS: readonly number[] = [SEQUENCE & NUMBER, SET & NUMBER];
const LENGTH_BYTES_MAX = 4;
const OID_BYTES_MAX = 64;

type Open = { node: Der; children: Der[]; end: number };

/**
 * Reads one value with nothing behind it. Nesting is tracked in a list, so that hostile input cannot exhaust the stack.
 */
export function readDer(bytes: Uint8Array): Result<Der, DerFailure> {
  const first = readNode(bytes, 0, bytes.length);
  if (!first.ok) return first;
  const root = first.value;
  if (root.end !== bytes.length) return err({ kind: "der_trailing" });

  const open: Open[] = [root];
  let at = root.end - root.node.content.length;
  for (let current = open.at(-1); current !== undefined; current = open.at(-1)) {
    if (at === current.end || !isConstructed(current.node.tag)) {
      if (!hasValue(current.node)) return err({ kind: "der_value_malformed" });
      at = current.end;
      open.pop();
      continue;
    }
    if (open.length === DER_DEPTH_MAX) return err({ kind: "der_too_deep" });
    const next = readNode(bytes, at, current.end);
    if (!next.ok) return next;
    current.children.push(next.value.node);
    open.push(next.value);
    at = next.value.end - next.value.node.content.length;
  }
  return ok(root.node);
}

const isConstructed = (tag: number): boolean => (tag & CONSTRUCTED) !== 0;

function readNode(bytes: Uint8Array, at: number, limit: number): Result<Open, DerFailure> {
  const [tag, length] = [bytes[at], bytes[at + 1]];
  if (tag === undefined || length === undefined || at + 2 > limit) return err({ kind: "der_truncated" });
  if (!isTag(tag)) return err({ kind: "der_tag_refused" });

  let start = at + 2;
  let size = length;
  if (length >= 0x80) {
    // 10.1: the definite form, in as few octets as possible. 0x80 alone is the indefinite form.
    const octets = length & 0x7f;
    if (octets === 0 || octets > LENGTH_BYTES_MAX) return err({ kind: "der_length_malformed" });
    if (start + octets > limit) return err({ kind: "der_truncated" });
    size = 0;
    for (const octet of bytes.subarray(start, start + octets)) size = size * 0x100 + octet;
    if (size < 0x80 || size < 0x100 ** (octets - 1)) return err({ kind: "der_length_malformed" });
    start += octets;
  }
  const end = start + size;
  if (end > limit) return err({ kind: "der_truncated" });
  const children: Der[] = [];
  const node = { tag, bytes: bytes.subarray(at, end), content: bytes.subarray(start, end), children };
  return ok({ node, children, end });
}

function isTag(tag: number): boolean {
  const number = tag & NUMBER;
  // Certificates never use the form for tag numbers above 30.
  if (number === NUMBER) return false;
  if ((tag & CLASS) !== 0) return true;
  // 10.2: strings are primitive; of the universal types only SEQUENCE and SET are constructed. 8.1.5: tag 0 ends a
  // value of indefinite length, which DER does not have.
  return number !== 0 && isConstructed(tag) === COLLECTIONS.includes(number);
}

function hasValue(node: Der): boolean {
  switch (node.tag) {
    case BOOLEAN:
      return readBoolean(node) !== undefined;
    case INTEGER:
    case ENUMERATED:
      return isInteger(node.content);
    case BIT_STRING:
      return readBits(node) !== undefined;
    case NULL:
      return node.content.length === 0;
    case OBJECT_IDENTIFIER:
      return isOid(node.content);
    case UTC_TIME:
    case GENERALIZED_TIME:
      return readTime(node) !== undefined;
    case SET:
      return isSorted(node.children);
    default:
      return true;
  }
}

/** 8.3.2: the first nine bits are neither all zero nor all one. */
function isInteger({ length, 0: first, 1: second = 0 }: Uint8Array): boolean {
  if (length <= 1) return length === 1;
  return !(first === 0 && second < 0x80) && !(first === 0xff && second >= 0x80);
}

/** 8.19.2: no number begins with the padding octet 0x80, and the last number is complete. */
function isOid(content: Uint8Array): boolean {
  if (content.length === 0 || content.length > OID_BYTES_MAX || (content.at(-1) ?? 0) >= 0x80) return false;
  return content.every((octet, index) => octet !== 0x80 || (content[index - 1] ?? 0) >= 0x80);
}

/** 11.6: the elements of a SET OF are in ascending order of their encodings. */
function isSorted(nodes: readonly Der[]): boolean {
  return nodes.every((node, index) => {
    const before = nodes[index - 1];
    return before === undefined || before.bytes.toHex() <= node.bytes.toHex();
  });
}

// --- values -------------------------------------------------------------------------------------------------

/** The values inside `node` if it has this tag, else none. */
export function childrenOf(node: Der | undefined, tag: number): readonly Der[] {
  return node?.tag === tag ? node.children : [];
}

/** 11.1: TRUE is 0xff, FALSE is 0x00. */
export function readBoolean(node: Der | undefined): boolean | undefined {
  if (node?.tag !== BOOLEAN || node.content.length !== 1) return undefined;
  return node.content[0] === 0xff ? true : node.content[0] === 0 ? false : undefined;
}

/** 8.3: an integer of any size, with its sign. */
export function readInteger(node: Der | undefined): bigint | undefined {
  if (node?.tag !== INTEGER || !isInteger(node.content)) return undefined;
  return BigInt.asIntN(node.content.length * 8, BigInt(`0x${node.content.toHex()}`));
}

/** 11.2.1: unused bits are zero. */
export function readBits(node: Der | undefined): { unused: number; bytes: Uint8Array } | undefined {
  const unused = node?.content[0];
  if (node?.tag !== BIT_STRING || unused === undefined || unused > 7) return undefined;
  const bytes = node.content.subarray(1);
  const last = bytes.at(-1);
  if (last === undefined) return unused === 0 ? { unused, bytes } : undefined;
  return (last & ((1 << unused) - 1)) === 0 ? { unused, bytes } : undefined;
}

/** The octets of a BIT STRING without unused bits. */
export function readOctets(node: Der | undefined): Uint8Array | undefined {
  const bits = readBits(node);
  return bits?.unused === 0 ? bits.bytes : undefined;
}

/** The identifier in dotted notation. 8.19.4: the first two numbers are encoded as one. */
export function readOid(node: Der | undefined): string | undefined {
  if (node?.tag !== OBJECT_IDENTIFIER || !isOid(node.content)) return undefined;
  const numbers: bigint[] = [];
  let number = 0n;
  for (const octet of node.content) {
    number = (number << 7n) | BigInt(octet & 0x7f);
    if (octet >= 0x80) continue;
    numbers.push(number);
    number = 0n;
  }
  const [pair = 0n, ...others] = numbers;
  const top = pair < 80n ? pair / 40n : 2n;
  return [top, pair - top * 40n, ...others].join(".");
}

const UTC_TEXT = /^([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})Z$/;
const GENERALIZED_TEXT = /^([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})Z$/;

/** The time in seconds since 1970. 11.7, 11.8: it is in UTC, with seconds; RFC 5280 4.1.2.5.2: it has no fractions. */
export function readTime(node: Der | undefined): number | undefined {
  if (node?.tag !== UTC_TIME && node?.tag !== GENERALIZED_TIME) return undefined;
  const text = readAscii(node.content) ?? "";
  const match = (node.tag === UTC_TIME ? UTC_TEXT : GENERALIZED_TEXT).exec(text);
  if (match === null) return undefined;
  const [written = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number);
  // RFC 5280 4.1.2.5.1: two-digit years mean 1950 to 2049.
  const year = node.tag === GENERALIZED_TIME ? written : written < 50 ? 2000 + written : 1900 + written;
  const date = new Date(Date.UTC(year, month - 1, day, hour, minute, second));
  // The time is compared with its canonical form, because the platform turns a 30th of February into a day in March.
  const canonical = `${String(year).padStart(4, "0")}-${match.slice(2, 4).join("-")}T${match.slice(4).join(":")}.000Z`;
  return date.toISOString() === canonical ? date.getTime() / 1000 : undefined;
}

/**
 * Printable ASCII; undefined if there is a control character, by which a name can be made to look like another
 * (RFC8705-7.5-3).
 */
export function readAscii(content: Uint8Array): string | undefined {
  return content.every((octet) => octet >= 0x20 && octet < 0x7f)
    ? String.fromCharCode(...content)
    : undefined;
}

/** Whether both hold the same bytes; not in constant time. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((octet, index) => octet === b[index]);
}
