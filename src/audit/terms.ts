/**
 * The search terms of an audit event (PROD-6.3-3): our own design, over the fields of event.ts. A query filters by
 * terms, and the index lists the events of each (adapters/audit/indexing.ts).
 */

import { isJsonObject, type Json } from "../spec/rfc8259.ts";
import type { AuditEvent } from "./event.ts";
import { digitsOfId, digitsOfNumber } from "./support-number.ts";

export type TermName =
  | "type"
  | "outcome"
  /** The digits of the id that we gave to the request, for which its support number stands. */
  | "request"
  | "client"
  /** The requesting workload, the actor, and every actor in the chain of the subject token. */
  | "actor"
  /** The issuer of origin and the subject's `sub` there. */
  | "subject"
  /** The target that was requested or granted. */
  | "target"
  | "rule"
  /** `jti` of the issued token. */
  | "granted"
  /** `jti` of the subject token, of the actor token, and of a token that is ended; the thread of a deferral. */
  | "presented"
  /** `jti` of the tokens of ours from which the issued one was exchanged, and the id of the user's click. */
  | "ancestor"
  /** The id of a job of ours. */
  | "job"
  /** `txn` of the transaction token that was issued, or replaced. */
  | "transaction";

export type Term = { name: TermName; value: string };

/** At most this many targets of one request are indexed; a request for more than one target is refused anyway. */
const TARGETS_MAX = 4;

/** One text for issuer and `sub`: an issuer is a URL without spaces, so two pairs never have the same text. */
export const subjectTerm = (iss: string, sub: string): Term => ({ name: "subject", value: `${iss} ${sub}` });

/** PAGE-D-39: a request is found by the number that people read out; an id that gives none is its own term. */
export const requestTerm = <T extends string | undefined>(id: T): string | T =>
  id === undefined ? id : (digitsOfId(id) ?? digitsOfNumber(id) ?? id);

/** The search terms of an event, without duplicates. */
export function termsOf(event: AuditEvent): readonly Term[] {
  const { client, subject, actor, chain, requested, policy, granted, detail } = event;
  const terms: Term[] = [];
  add(terms, "type", event.type);
  add(terms, "outcome", event.outcome);
  // AUDIT-D-9: a count of failures names some of its requests in `detail`.
  add(terms, "request", requestTerm(event.request?.id));
  if (Array.isArray(detail?.requests))
    for (const id of detail.requests) add(terms, "request", requestTerm(text(id)));
  // Events about consents and about clients name them in `detail`.
  add(terms, "client", client?.client_id);
  add(terms, "client", text(detail?.client_id));
  add(terms, "actor", actor?.sub);
  add(terms, "actor", client?.workload);
  for (const { sub } of chain ?? []) add(terms, "actor", sub);
  add(terms, "actor", text(detail?.actor));
  add(terms, "subject", pair(subject?.iss, subject?.sub));
  add(terms, "subject", pair(text(detail?.iss), text(detail?.sub)));
  const others = terms.length;
  add(terms, "target", granted?.aud);
  for (const list of [requested?.audience, requested?.resource]) {
    for (const target of list ?? []) if (terms.length < others + TARGETS_MAX) add(terms, "target", target);
  }
  add(terms, "rule", policy?.rule_id);
  add(terms, "granted", granted?.jti);
  add(terms, "presented", subject?.token.jti);
  add(terms, "presented", actor?.token.jti);
  add(terms, "presented", text(detail?.jti));
  add(terms, "presented", text(detail?.deferral));
  for (const jti of granted?.parent_jti ?? []) add(terms, "ancestor", jti);
  add(terms, "ancestor", event.grant?.id);
  if (event.job?.iss === undefined) add(terms, "job", event.job?.id);
  add(terms, "transaction", granted?.txn);
  add(terms, "transaction", subject?.token.txn);
  if (detail === undefined) return terms;
  const { ends, also_ends: also } = detail;
  for (const one of [ends, ...(Array.isArray(also) ? also : [])])
    for (const [name, value] of endsOf(one)) add(terms, name, value);
  return terms;
}

function add(terms: Term[], name: TermName, value: string | undefined): void {
  if (value === undefined) return;
  for (const one of terms) if (one.name === name && one.value === value) return;
  terms.push({ name, value });
}

/** The thing that an ending names (`ends` and `also_ends` of its event), under the name of a term. */
function endsOf(ends: Json | undefined): readonly [TermName, string | undefined][] {
  if (!isJsonObject(ends)) return [];
  switch (ends.by) {
    case "token":
      return [["presented", text(ends.jti)]];
    case "subject":
      return [["subject", pair(text(ends.iss), text(ends.sub))]];
    case "actor":
      return [["actor", text(ends.spiffeId)]];
    case "client":
      return [["client", text(ends.clientId)]];
    case "grant":
      return [["ancestor", text(ends.id)]];
    case "job":
      return [["job", text(ends.id)]];
    case "rule":
      return [["rule", text(ends.id)]];
    default:
      return [];
  }
}

const text = (value: Json | undefined): string | undefined => (typeof value === "string" ? value : undefined);

const pair = (iss: string | undefined, sub: string | undefined): string | undefined =>
  iss === undefined || sub === undefined ? undefined : subjectTerm(iss, sub).value;
