/**
 * RFC 7239, Forwarded HTTP Extension: https://www.rfc-editor.org/rfc/rfc7239.html
 * Covers 4 the field, 5.2 for, 6 node identifiers, and 7.4 X-Forwarded-For, which it replaces. The caller reads these
 * fields only from the proxy that may send them (RFC7239-8.1-1).
 * Elsewhere: 8.1 http/proxy.ts.
 */
import ipaddr from "ipaddr.js";
import { FORWARDED_NODE_CHARS_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { stripBlanks } from "./rfc9110.ts";

/** The fields in which a proxy may tell the address of its client. */
export const FORWARDED_FIELDS = ["Forwarded", "X-Forwarded-For"] as const;
export type ForwardedField = (typeof FORWARDED_FIELDS)[number];

type ForwardedFailure = { kind: "forwarded_for_missing" | "forwarded_malformed" };

/**
 * The address of the client as the last proxy tells it, in canonical form; undefined where that proxy hides it. `value`:
 * all lines of the field, joined by commas.
 */
export function parseForwarded(
  field: ForwardedField,
  value: string,
): Result<string | undefined, ForwardedFailure> {
  return field === "Forwarded" ? parseElements(value) : parseAddressList(value);
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const QUOTED = String.raw`"((?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*)"`;
const PAIR = new RegExp(`(${TOKEN})=(?:(${TOKEN})|${QUOTED})`, "y");
const COMMA = /[ \t]*,[ \t]*/y;

/**
 * RFC7239-4-1, RFC7239-5.2-1: the last element is the one that the proxy in front of us added. All of the field is read, because a
 * comma within quotes, which any client may send, does not begin an element.
 */
function parseElements(value: string): Result<string | undefined, ForwardedFailure> {
  const text = stripBlanks(value);
  let last: [name: string, value: string][] = [];
  let element: typeof last = [];
  for (let at = 0; at < text.length; ) {
    PAIR.lastIndex = at;
    const pair = PAIR.exec(text);
    if (pair !== null) {
      const [, name = "", token, quoted = ""] = pair;
      // RFC7239-4-2: the case of the name does not count.
      element.push([name.toLowerCase(), token ?? quoted.replace(/\\(.)/g, "$1")]);
      at = PAIR.lastIndex;
    }
    COMMA.lastIndex = at;
    if (at === text.length) break;
    if (text[at] === ";") {
      at += 1;
    } else if (COMMA.test(text)) {
      at = COMMA.lastIndex;
      if (element.length > 0) last = element;
      element = [];
    } else return err({ kind: "forwarded_malformed" });
  }
  if (element.length > 0) last = element;
  const [node, another] = last.filter(([name]) => name === "for");
  if (node === undefined) return err({ kind: "forwarded_for_missing" });
  // RFC7239-4-3: a parameter stands in an element once.
  return another === undefined ? parseNode(node[1]) : err({ kind: "forwarded_malformed" });
}

const NODE =
  /^(?:(?<v4>[0-9.]+)|\[(?<v6>[0-9A-Fa-f:.]+)\]|(?<hidden>unknown|_[A-Za-z0-9._-]+))(?::(?:[0-9]{1,5}|_[A-Za-z0-9._-]+))?$/i;

/** RFC7239-6-1, RFC7239-6.1-1: an address, of version 6 in brackets, and perhaps a port, which does not count. */
function parseNode(node: string): Result<string | undefined, ForwardedFailure> {
  if (node.length > FORWARDED_NODE_CHARS_MAX) return err({ kind: "forwarded_malformed" });
  const { v4, v6, hidden } = NODE.exec(node)?.groups ?? {};
  // RFC7239-6.2-1, RFC7239-6.3-1: the proxy does not know its client, or does not tell.
  if (hidden !== undefined) return ok(undefined);
  if (v4 !== undefined && ipaddr.IPv4.isValidFourPartDecimal(v4)) return ok(v4);
  if (v6 !== undefined && ipaddr.IPv6.isValid(v6)) {
    const address = ipaddr.IPv6.parse(v6);
    return ok((address.isIPv4MappedAddress() ? address.toIPv4Address() : address).toString());
  }
  return err({ kind: "forwarded_malformed" });
}

/**
 * RFC7239-7.4-1: the value holds addresses with commas between them, the last one added last; version 6 also stands
 * without brackets.
 */
function parseAddressList(value: string): Result<string | undefined, ForwardedFailure> {
  const last = stripBlanks(value.slice(value.lastIndexOf(",") + 1));
  if (last === "") return err({ kind: "forwarded_for_missing" });
  const bare = last.indexOf(":") !== last.lastIndexOf(":") && !last.startsWith("[");
  return parseNode(bare ? `[${last}]` : last);
}
