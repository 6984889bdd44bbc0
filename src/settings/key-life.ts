/**
 * The life of a signing key: announced (published, so that verifiers know it before it signs) → active → retired
 * (verifies what it signed) → removed. For each purpose and algorithm in use one key is active and one announced.
 */

export type KeyState = "announced" | "active" | "retired";

/** A key signs access tokens, audit checkpoints or grants for other servers, never two of them. */
export type KeyPurpose = "token" | "checkpoint" | "grant";

/** What is known of a key beside the key itself. */
export type KeyFacts = {
  kid: string;
  alg: string;
  purpose: KeyPurpose;
  state: KeyState;
  createdAtSeconds: number;
  /** When it came into its state; absent: when it was created. */
  sinceSeconds?: number;
  /** From when on the operator wants another key to sign in its place. */
  replaceAtSeconds?: number;
  /** When an instance last had its purpose and algorithm in use. */
  usedAtSeconds?: number;
};
