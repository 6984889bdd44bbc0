/** Interfaces only: what the store keeps of sign-in, consents to be asked for and refresh tokens. */

import type { Origin } from "./policy/access.ts";
import type {
  FamilyFacts,
  PendingConsent,
  PresentedFamily,
  Recheck,
  SessionFacts,
  ShortLived,
  ShortLivedKind,
} from "./records.ts";

/** What users gave to clients, as long as refresh tokens of it may be used and an hour longer; ended families too. */
export interface Families {
  /** By the digest of any of its tokens. */
  find(digest: string): Promise<PresentedFamily | undefined>;
  /** Those of one user, the one that was used last first. */
  list(origin: Origin): Promise<readonly FamilyFacts[]>;
}

/** Sessions of users at our own pages. */
export interface Sessions {
  /** Those of the user with this digest that have not expired, ended ones too. */
  ofUser(holder: string, nowSeconds: number): Promise<readonly SessionFacts[]>;
}

/** What providers said last of their users; families are found with it. */
export interface Rechecks {
  find(origin: Origin): Promise<Recheck | undefined>;
  /** Replaces the version before this one. False where that is not the current one: of two changes one is made. */
  replace(recheck: Recheck): Promise<boolean>;
}

/** The rows of sign-in and authorization, shared by all instances; none is found once it has expired. */
export interface ShortLivedRows<
  Bodies extends Record<ShortLivedKind, object> = Record<ShortLivedKind, object>,
> {
  /** One that comes with no event; what does is in the entry of the event. */
  add(row: ShortLived<ShortLivedKind, Bodies[ShortLivedKind]>): Promise<void>;
  find<K extends ShortLivedKind>(
    kind: K,
    key: string,
    nowSeconds: number,
  ): Promise<ShortLived<K, Bodies[K]> | undefined>;
  /** Replaces the version before this one. False where that is not the current one: of two changes one is made. */
  replace(row: ShortLived<ShortLivedKind, Bodies[ShortLivedKind]>): Promise<boolean>;
}

/** The most pending consents of one agent, of one user, and of both. */
type PendingCaps = Record<"perActor" | "perSubject" | "perPair", number>;

/** Consents for which users may be asked, shared by all instances; none is found once it has expired. */
export interface PendingConsents {
  /**
   * The pending consent with the same `asked`, whatever was decided about it, or else this one, which is added. Undefined,
   * and nothing is added, where a cap is reached.
   */
  open(
    pending: PendingConsent,
    caps: PendingCaps & { nowSeconds: number },
  ): Promise<PendingConsent | undefined>;
  find(id: string, nowSeconds: number): Promise<PendingConsent | undefined>;
  /** Those of one user, by the digest of the user, the one that ends first before the others. */
  list(subject: string, nowSeconds: number): Promise<readonly PendingConsent[]>;
  /**
   * Replaces the version before this one, but for the number of polls. False where that is not the current one: of two
   * changes one is made.
   */
  replace(pending: PendingConsent): Promise<boolean>;
  /** Counts one poll more. False where this version is not the current one, or has expired. */
  poll(pending: PendingConsent, nowSeconds: number): Promise<boolean>;
}
