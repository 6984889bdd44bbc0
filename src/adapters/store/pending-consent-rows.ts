/** Converts pending consents to rows and back, as in both stores. */
import type { PendingConsent } from "../../records.ts";

/** `body` is JSON, in which every character can be escaped. */
export type PendingConsentRow = {
  asked: string;
  id: string;
  version: number;
  actor: string;
  subject: string;
  body: string;
  expires_at: number;
};

export function toPendingConsentRow({
  asked,
  id,
  version,
  actor,
  subject,
  expiresAtSeconds,
  ...body
}: PendingConsent): PendingConsentRow {
  return { asked, id, version, actor, subject, body: JSON.stringify(body), expires_at: expiresAtSeconds };
}

export const fromPendingConsentRow = ({
  asked,
  id,
  version,
  actor,
  subject,
  body,
  expires_at: expiresAtSeconds,
}: PendingConsentRow): PendingConsent => ({
  asked,
  id,
  version,
  actor,
  subject,
  ...JSON.parse(body),
  expiresAtSeconds,
});
