/** Receipts of a log that is made here, and the program that is printed for those who verify them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { findIssuing, keyOf, makeReceipt, type Showing } from "../../src/adapters/audit/receipts.ts";
import { verifier } from "../../src/adapters/crypto/verifier.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import { programs } from "./developers.ts";
import { mutate, type Prng } from "./prng.ts";
import { ISSUER, makeTrail, type Trail } from "./trail.ts";

export type Verify = (
  text: string,
  pins: { keys: readonly string[]; witnesses?: readonly string[]; quorum?: number },
) => {
  index: number;
  size: number;
  token: Record<string, unknown>;
  chain?: Record<string, unknown>;
  rest?: Record<string, unknown>;
};

export const RECEIPT_PROGRAMS = ["receipt.ts", "receipt.py"] as const;

/** The program in TypeScript, loaded as it is printed; both lie in the folder. */
export async function loadVerifier(): Promise<{ verify: Verify; folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), "mandate-receipts-"));
  for (const name of RECEIPT_PROGRAMS) writeFileSync(join(folder, name), programs().get(name) ?? "");
  const { verifyReceipt } = await import(pathToFileURL(join(folder, "receipt.ts")).href);
  return { verify: verifyReceipt, folder };
}

export const issuing = (jti: string): AuditEvent => ({
  type: "token_exchange.delegation",
  outcome: "allow",
  reason: "rule_match",
  mode: "delegation",
  subject: {
    iss: "https://idp.example",
    sub: `user-${jti}`,
    kind: "user",
    token: { type: "jwt", fingerprint: "f" },
  },
  policy: { digest: `sha256:${"0a".repeat(32)}`, rule_id: "crew-for-travellers" },
  granted: {
    jti,
    token_type: "Bearer",
    sub: "alice",
    aud: "https://api.example",
    scope: "trips.read",
    exp: 1790000300,
    fingerprint: "G1H8uoz4fkz9loT-rJ9HJZop2r5dYOMWLy4UVSuMKqc",
    act_depth: 1,
    kid: "k",
    parent_jti: [],
  },
});

export type Receipts = {
  trail: Trail;
  /** The key of the log, as verifiers take it. */
  key: string;
  of(jti: string, showing?: Showing): Promise<string>;
};

/** A log of so many tokens, `t-0` and on, under one checkpoint. */
export async function makeReceipts(t: TestContext, tokens: number): Promise<Receipts> {
  const trail = await makeTrail(t);
  const journal = await trail.journal("as-1");
  const checkpoints = trail.checkpoints("as-1", journal);
  await Promise.all(Array.from({ length: tokens }, (_, at) => journal.record({ event: issuing(`t-${at}`) })));
  await checkpoints.write();
  await checkpoints.close();
  const { store, signer } = trail;
  const key = await signer.current("EdDSA");
  return {
    trail,
    key: keyOf(ISSUER, "as-1", signer.own({ ...key, members: {} })),
    async of(jti, showing) {
      const event = await findIssuing(store.audit, jti);
      const made = event && (await makeReceipt({ store, signer, verifier }, event, showing));
      if (!made?.ok) throw new Error(`no receipt of ${jti}: ${made?.error ?? "unknown"}`);
      return made.value;
    },
  };
}

const CHARACTERS = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));

/** The text with something else in it, less of it, or its lines in another order; undefined where that is the same. */
export function alter(text: string, random: Prng): string | undefined {
  const lines = text.split("\n");
  const [one, two] = [random.below(lines.length), random.below(lines.length)];
  const swapped = lines.with(one, lines[two] ?? "").with(two, lines[one] ?? "");
  const at = random.below(text.length);
  const altered = random.pick([
    mutate(random, text, CHARACTERS),
    mutate(random, text, CHARACTERS),
    swapped.join("\n"),
    text.slice(0, at),
    text.slice(at),
    text + text.slice(at),
  ]);
  return altered === text ? undefined : altered;
}

export const forget = (folder: string): void => rmSync(folder, { recursive: true });
