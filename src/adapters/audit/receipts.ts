/**
 * Receipts (clauses RCPT-D): what shows that an event is in its log, under the newest checkpoint of it, without what is
 * beside it. Each is compared with the tree before it is given, so that nothing is shown that a verifier would refuse.
 */
import type { Checkpoint } from "../../audit/checkpoint.ts";
import { readEvent } from "../../audit/columns.ts";
import { noteText, originOf, signedNote, verifierKey } from "../../audit/note.ts";
import { splitRecord } from "../../audit/parts.ts";
import { receiptText } from "../../audit/receipt.ts";
import type { Term } from "../../audit/terms.ts";
import { consistencyOf, inclusionOf } from "../../audit/tree.ts";
import { type Receipts, type Signer, StoreUnavailable, type Verifier } from "../../ports.ts";
import type { AuditRecord } from "../../records.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import { type Jwk, parseJwk } from "../../spec/rfc7517.ts";
import type { Store } from "../store/store.ts";
import { commitmentsOf, eventHash, readSealed, saltsOf } from "./chain.ts";
import { keyIdOf, rawKeyOf, readOwnCheckpoint } from "./checkpoints.ts";
import { TreeHashes } from "./tree-hashes.ts";

export type ReceiptSources = {
  store: Pick<Store, "audit">;
  /** The keys of this server, among them those for checkpoints. */
  signer: Pick<Signer, "own">;
  verifier: Verifier;
};

/** What a receipt shows beside the token. */
export type Showing = { chain?: boolean; rest?: boolean };

/** `pending`: no checkpoint covers it yet. `without`: it is hashed as one text, or its checkpoint is no note. */
export type NoReceipt = "pending" | "without";

/** The event that issued a token, by its `jti`. */
export const findIssuing = (audit: Store["audit"], jti: string): Promise<AuditRecord | undefined> =>
  findAll(audit, [[{ name: "granted", value: jti }]], 1).then(([event]) => event);

/** Events in order of time. */
export async function findAll(
  audit: Store["audit"],
  terms: readonly (readonly Term[])[],
  limit: number,
): Promise<readonly AuditRecord[]> {
  const spans = (await audit.heads()).map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
  return audit.find({ terms, spans, limit });
}

export async function makeReceipt(
  { store, signer, verifier }: ReceiptSources,
  { log, seq, body }: AuditRecord,
  { chain, rest }: Showing = {},
): Promise<Result<string, NoReceipt>> {
  const row = await store.audit.checkpoint(log, Number.MAX_SAFE_INTEGER);
  // RCPT-D-2: only a checkpoint that is durable covers it.
  if (row === undefined || row.treeSize <= seq) return err("pending");
  const checkpoint = await readOwnCheckpoint(row, signer, verifier);
  if (checkpoint === undefined) throw new StoreUnavailable(`the last checkpoint of ${log} is not ours`);
  const record = readSealed(body);
  if (record === undefined || checkpoint.note === undefined) return err("without");
  const { tree, root, note } = checkpoint;
  const hashes = new TreeHashes(store.audit, log);
  await hashes.keep(tree.size);
  const [leaf, whole] = await hashes.roots([
    [seq, seq + 1],
    [0, tree.size],
  ]);
  // RCPT-D-5: nothing is proven of a log that is not the one that was signed.
  if (leaf?.toHex() !== eventHash(body) || whole?.toHex() !== root)
    throw new StoreUnavailable(`the audit log ${log} is not as its checkpoint says`);
  const parts = splitRecord(record);
  const salts = saltsOf(record.salt);
  const { c, r } = commitmentsOf(parts, record.salt);
  const shown = (name: "t" | "c" | "r") => ({ part: parts[name], salt: salts[name].toString("base64url") });
  return ok(
    receiptText(
      defined<Parameters<typeof receiptText>[0]>({
        entry: { c, r, prev: Buffer.from(record.prev, "hex").toString("base64url") },
        token: shown("t"),
        chain: chain ? shown("c") : undefined,
        rest: rest ? shown("r") : undefined,
        index: seq,
        proof: await hashes.roots(inclusionOf(seq, tree.size)),
        checkpoint: noteOf(checkpoint, note),
      }),
    ),
  );
}

/** What is asked of receipts over HTTP. */
export function receiptsOf(sources: ReceiptSources & { issuer: string; signer: Signer }): Receipts {
  const { store, signer, verifier, issuer } = sources;
  const newest = async (log: string): Promise<Checkpoint | undefined> => {
    const row = await store.audit.checkpoint(log, Number.MAX_SAFE_INTEGER);
    return row && readOwnCheckpoint(row, signer, verifier);
  };
  return {
    async find(jti) {
      const event = await findIssuing(store.audit, jti);
      const { client, granted } = (event && readEvent(event.body)) ?? {};
      if (event === undefined || client === undefined || granted === undefined) return undefined;
      const receipt = () => makeReceipt(sources, event);
      return { jti, client: client.client_id, audience: granted.aud, receipt };
    },
    async logs() {
      const keys = signer.published().flatMap((jwk) => {
        const parsed = parseJwk(jwk);
        return parsed.ok && parsed.value.kty === "OKP" ? [parsed.value] : [];
      });
      return (await store.audit.heads()).map(({ log }) => ({
        log,
        origin: originOf(issuer, log),
        keys: keys.map((key) => keyOf(issuer, log, key)),
      }));
    },
    async checkpoint(log) {
      const checkpoint = await newest(log);
      return checkpoint?.note === undefined ? undefined : noteOf(checkpoint, checkpoint.note);
    },
    async consistency(log, from, to) {
      if (to > ((await newest(log))?.tree.size ?? 0)) return undefined;
      const hashes = new TreeHashes(store.audit, log);
      await hashes.keep(to);
      return (await hashes.roots(consistencyOf(from, to))).map((one) => one.toBase64());
    },
  };
}

function noteOf({ issuer, log, tree, root }: Checkpoint, signature: string): string {
  const origin = originOf(issuer, log);
  return signedNote(origin, noteText(origin, tree.size, Uint8Array.fromHex(root)), signature);
}

/** The key of a log, as verifiers take it. */
export function keyOf(issuer: string, log: string, key: Jwk | undefined): string {
  const origin = originOf(issuer, log);
  return verifierKey(origin, keyIdOf(origin, key), rawKeyOf(key));
}
