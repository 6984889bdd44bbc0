/** Sessions of users: by a random cookie, for an hour at most, and never evidence anywhere but on our own pages. */

import type { AuditEvent } from "../../audit/event.ts";
import { checkSubject } from "../../flows/still-covers.ts";
import { SESSION_IDLE_SECONDS, SESSION_SECONDS_MAX, SESSIONS_PER_USER_MAX } from "../../limits/people.ts";
import { signInKeys, userDigest } from "../../policy/endings.ts";
import type { RowChange } from "../../records.ts";
import { defined } from "../../result.ts";
import { resembled } from "../../settings/agents.ts";
import type { Client } from "../../settings/settings.ts";
import type { PeoplePorts, SessionPorts } from "../ports.ts";
import type { PeopleRow, Session } from "../records.ts";

/** `key` is the digest of the session's cookie. */
export type OpenSession = Session & { key: string };

/** COOKIE-8.4-1, OIDC-D-4: each sign-in makes a new secret; an earlier session of the browser ends. */
export function buildSession(
  { random, hash, clock }: Pick<PeoplePorts, "random" | "hash" | "clock">,
  session: Session,
  before: string | undefined,
): { secret: string; key: string; rows: readonly RowChange<PeopleRow>[] } {
  const secret = random.secret();
  const key = hash.sha256(secret);
  const add = {
    kind: "session",
    key,
    version: 1,
    holder: userDigest(hash.sha256, session.origin),
    body: session,
    expiresAtSeconds: clock.nowSeconds() + SESSION_IDLE_SECONDS,
  } as const;
  const removes = before === undefined ? [] : [{ remove: "session", key: before } as const];
  return { secret, key, rows: [...removes, { add, most: SESSIONS_PER_USER_MAX }] };
}

/**
 * Finds the session, which then lives on for another while; there is none of a subject or an issuer that was disabled,
 * ended or named anew meanwhile.
 */
export async function findSession(
  ports: SessionPorts,
  key: string | undefined,
): Promise<OpenSession | undefined> {
  if (key === undefined) return undefined;
  const nowSeconds = ports.clock.nowSeconds();
  const row = await ports.shortLived.find("session", key, nowSeconds);
  if (row === undefined || !checkSubject(ports.settings(), row.body.origin, row.body.sub).ok)
    return undefined;
  if (!ports.settings().signIn?.providers.has(row.body.provider)) return undefined;
  // PAGE-D-14: what ends the tokens of a user ends a sign-in that is older, so that a stolen cookie consents to nothing.
  const { startedAtSeconds } = row.body;
  const keys = signInKeys(ports.hash.sha256, row.body, startedAtSeconds);
  if (await ports.endings.isEnded(keys)) return undefined;
  const end = startedAtSeconds + SESSION_SECONDS_MAX;
  const expiresAtSeconds = Math.min(nowSeconds + SESSION_IDLE_SECONDS, end);
  // The time is not written with each page within a few seconds; if another page was quicker, it has done the same.
  if (expiresAtSeconds - row.expiresAtSeconds > SESSION_IDLE_SECONDS / 10) {
    await ports.shortLived.replace({ ...row, version: row.version + 1, expiresAtSeconds });
  }
  return { ...row.body, key };
}

/** The user of a page, for the audit trail. */
export const describeUser = ({ origin, key }: OpenSession): Required<Pick<AuditEvent, "subject">> => ({
  subject: { ...origin, kind: "user", token: { type: "session", fingerprint: key } },
});

/** The parties of a request of a client to a user, for the audit trail. */
export const describeAsked = (
  { settings }: Pick<PeoplePorts, "settings">,
  { clientId, auth, source, claimedName }: Client,
  session: OpenSession,
): Pick<AuditEvent, "client" | "subject" | "mode"> => ({
  mode: "authorization_code",
  client: defined({
    client_id: clientId,
    auth_method: auth.method,
    source,
    name_like: claimedName && resembled(settings().agents, claimedName),
  }),
  ...describeUser(session),
});
