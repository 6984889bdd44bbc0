/**
 * What an event of the audit trail is found by (PROD-6.3-3): own design, over the fields of audit-events.md. Every
 * filter is a term, and an event has a row for each of its terms.
 */

import type { Json } from "../spec/rfc8259.ts";
import type { AuditEvent } from "./event.ts";

export type TermName =
  | "type"
  | "outcome"
  | "client"
  /** Who acts: now, anywhere in the incoming chain, or behind an impersonation. */
  | "actor"
  /** The origin issuer and its `sub`. */
  | "subject"
  /** Asked for or granted. */
  | "target"
  | "rule"
  /** The token that the event issued. */
  | "granted"
  /** The tokens that were shown in it. */
  | "presented"
  /** The tokens of ours that the issued one descends from. */
  | "ancestor";

export type Term = { name: TermName; value: string };

/** Of names that the caller chose, this many; a request with more than one target is refused anyway. */
const TARGETS_MAX = 4;

/** An issuer is a URL and has no space, so that no two pairs have one text. */
export const subjectTerm = (iss: string, sub: string): Term => ({ name: "subject", value: `${iss} ${sub}` });

export function termsOf(event: AuditEvent): readonly Term[] {
  const { client, subject, actor, chain = [], requested, policy, granted, detail = {} } = event;
  const targets = [granted?.aud, ...(requested?.audience ?? []), ...(requested?.resource ?? [])].filter(
    (target) => target !== undefined,
  );
  const values: Partial<Record<TermName, readonly (string | undefined)[]>> = {
    type: [event.type],
    outcome: [event.outcome],
    // Consents, and clients that are made, changed or removed, are told of in the detail.
    client: [client?.client_id, text(detail.client_id)],
    actor: [actor?.sub, client?.workload, ...chain.map(({ sub }) => sub), text(detail.actor)],
    subject: [
      subject && subjectTerm(subject.iss, subject.sub).value,
      pair(text(detail.iss), text(detail.sub)),
    ],
    target: [...new Set(targets)].slice(0, TARGETS_MAX),
    rule: [policy?.rule_id],
    granted: [granted?.jti],
    presented: [subject?.token.jti, actor?.token.jti],
    ancestor: granted?.parent_jti ?? [],
  };
  return Object.entries(values).flatMap(([name, list]) =>
    [...new Set(list)].flatMap((value) =>
      value === undefined ? [] : [{ name: name as TermName, value } satisfies Term],
    ),
  );
}

const text = (value: Json | undefined): string | undefined => (typeof value === "string" ? value : undefined);

const pair = (iss: string | undefined, sub: string | undefined): string | undefined =>
  iss === undefined || sub === undefined ? undefined : subjectTerm(iss, sub).value;
