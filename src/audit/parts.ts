/**
 * What a leaf of the tree says of a record (RCPT-D-1): our own design, after RFC 9162 2.1.1. The leaf is a small entry that
 * commits to three parts of the record, each with a salt of its own, so that a receipt can show one part and proves the
 * others without telling them.
 */
import { isJsonObject, type Json, type JsonObject } from "../spec/rfc8259.ts";
import { canonicalizeSparse } from "../spec/rfc8785.ts";

/** The token, the chain, and the rest; each text is in its canonical form. */
export type Parts = { readonly t: string; readonly c: string; readonly r: string };

/** Those of the entry itself, of the chain, and of the token; every other member is in the rest. */
const NOT_IN_REST: ReadonlySet<string> = new Set([
  "log",
  "prev",
  "salt",
  "seq",
  "v",
  "actor",
  "chain",
  "mode",
  "subject",
  "time",
  "type",
]);

/** No member of a record is outside of its entry and its parts. */
export function splitRecord(record: object): Parts {
  const { actor, chain, granted, mode, policy, subject, time, type } = record as JsonObject;
  const { consent } = membersOf(policy);
  const { aud: target, scope } = membersOf(granted);
  const rest: Record<string, unknown> = {};
  for (const name in record) if (!NOT_IN_REST.has(name)) rest[name] = record[name as keyof typeof record];
  return {
    t: textOf({ ...tokenOf(granted, policy), time, type }),
    c: textOf({ actor, chain, consent, mode, scope, subject, target }),
    r: textOf(rest),
  };
}

const textOf = (part: object): string => canonicalizeSparse(part as Json);

const membersOf = (value: Json | undefined): { readonly [name: string]: Json | undefined } =>
  isJsonObject(value) ? value : {};

const SHA256 = /^sha256:([0-9a-f]{64})$/;

/** In order; without a token there is none of it. */
function tokenOf(granted: Json | undefined, policy: Json | undefined) {
  if (!isJsonObject(granted)) return {};
  const { exp, fingerprint: fp, jti } = granted;
  const { digest, rule_id: rule } = membersOf(policy);
  const [, hex] = SHA256.exec(String(digest)) ?? [];
  // The digest is written as short as the others of a receipt, of which a token's has at most 2 KB.
  const pol = hex && Uint8Array.fromHex(hex).toBase64({ alphabet: "base64url", omitPadding: true });
  return { exp, fp, jti, pol, rule };
}

/** The commitments to the parts of a record, and its place; hashes are base64url. */
export type LeafEntry = Parts & { readonly log: string; readonly prev: string; readonly seq: number };

/** The text that is hashed as the leaf, after a zero byte. */
export const leafText = ({ c, log, prev, r, seq, t }: LeafEntry): string =>
  canonicalizeSparse({ c, log, prev, r, seq, t, v: 2 });
