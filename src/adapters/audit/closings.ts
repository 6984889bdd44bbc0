/** What this instance took away lately, kept so that it can be written again where the store loses it (STORE-D-25). */
import { CLOSINGS_KEPT_MAX } from "../../limits/store.ts";
import type { Entry } from "../../records.ts";
import { defined } from "../../result.ts";

/** The part of an entry that ends, withdraws, removes, or replaces what could do more. */
export type Closing = Pick<Entry, "event" | "ending" | "also" | "consent" | "registration">;

/** A record that takes something away, by its place in the log. */
export type KeptClosing = { seq: number; id: string; closing: Closing };

/** Undefined for an entry that only gives. A lift is none either: written late, it would undo an ending of meanwhile. */
export function closingOf({
  event,
  ending,
  also,
  consent,
  registration,
}: Omit<Entry, "guards">): Closing | undefined {
  const altered = consent === undefined || "add" in consent ? undefined : consent;
  const changed = registration === undefined || "register" in registration ? undefined : registration;
  if (ending === undefined && altered === undefined && changed === undefined) return undefined;
  return defined<Closing>({ event, ending, also, consent: altered, registration: changed });
}

type Journal = {
  follow(listener: (written: readonly { seq: number; id: string; closing?: Closing }[]) => void): void;
};

/** The latest ones that are known to be durable. */
export function keepClosings(journal: Journal): { since(seq: number): KeptClosing[] } {
  let kept: KeptClosing[] = [];
  journal.follow((written) => {
    for (const { seq, id, closing } of written) if (closing !== undefined) kept.push({ seq, id, closing });
    kept = kept.slice(-CLOSINGS_KEPT_MAX);
  });
  return { since: (from) => kept.filter(({ seq }) => seq >= from) };
}
