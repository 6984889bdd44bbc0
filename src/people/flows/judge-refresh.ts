/** Whether a refresh token that was presented gives anything, by the state of its family; pure. */
import type { Reason } from "../../audit/reasons.ts";
import { REFRESH_ROTATIONS_MAX, REFRESH_WAIT_SECONDS } from "../../limits/people.ts";
import type { Family, FamilyRotation, PresentedFamily } from "../../records.ts";
import type { RefreshSettings } from "../../settings/settings.ts";

export type Presenter = {
  clientId: string;
  /** Whether the client proved nothing. */
  isPublic: boolean;
  /** The thumbprint of the key of the request's proof. */
  jkt?: string;
  /** The source of the request, as a digest under the token that it presents. */
  source: string;
};

export type JudgedRefresh =
  | { use: "keep" }
  /** The current token was presented: a public client gets the next one; the `earlier` rotations stay known. */
  | { use: "rotate"; earlier: readonly FamilyRotation[] }
  /** The token before was presented: the client did not get the answer, or several of its processes asked at once. */
  | { use: "again"; sealed: string; elsewhere: boolean }
  /** Nothing is given; `ends` says that the family ends, and `waitSeconds` that the client may come again. */
  | { refused: Reason; ends: boolean; waitSeconds?: number };

const refuse = (refused: Reason): JudgedRefresh => ({ refused, ends: false });
const end = (refused: Reason): JudgedRefresh => ({ refused, ends: true });
const wait = (refused: Reason): JudgedRefresh => ({
  refused,
  ends: false,
  waitSeconds: REFRESH_WAIT_SECONDS,
});

export function judgeRefresh(
  { family, ended, presented, rotated, retriedElsewhere }: PresentedFamily,
  { clientId, isPublic, jkt, source }: Presenter,
  settings: RefreshSettings,
  nowSeconds: number,
): JudgedRefresh {
  if (ended !== undefined) return refuse("refresh_token_ended");
  if (endOf(family, settings) <= nowSeconds) return refuse("refresh_token_expired");
  // RFC6749-6-4, RFC6749-10.4-4, OAUTH21-4.3-2, REFRESH-D-9: a client_id alone proves nothing, so it ends nothing either.
  if (family.clientId !== clientId) return { refused: "refresh_token_of_other_client", ends: !isPublic };
  // The family of a public client is not continued by a key, nor that of a key without it.
  if (family.rotates !== isPublic) return end("refresh_method_changed");
  // RFC9449-5-6, RFC9449-5-7, REFRESH-D-8: the key is checked before anything that a token without its key could
  // change.
  if (family.jkt !== undefined && family.jkt !== jkt) return refuse("refresh_key_not_proven");
  const { latest = [], nowMs = 0, sealed } = rotated ?? {};
  const recent = latest.filter(({ atMs }) => nowMs - atMs <= settings.retryMs);
  if (presented === family.generation) {
    if (!family.rotates) return { use: "keep" };
    // REFRESH-D-5: no rotation is forgotten within the window, so that none looks like a reuse.
    return recent.length < REFRESH_ROTATIONS_MAX
      ? { use: "rotate", earlier: recent }
      : wait("refreshes_too_many");
  }
  // REFRESH-D-5, FAPI2-5.3.2-1
  const own = recent.find(({ generation }) => generation === presented);
  // REFRESH-D-21: a client may change its network once between two requests; a thief cannot follow it for longer.
  // A source that is forgotten with what it could open tells nothing.
  const elsewhere = family.jkt === undefined && own?.by !== undefined && own.by !== source;
  const isBefore = own !== undefined && presented === family.generation - 1;
  if (isBefore && sealed !== undefined && !(elsewhere && retriedElsewhere))
    return { use: "again", sealed, elsewhere };
  // REFRESH-D-5: processes that share a token may be late by more than one rotation; the next token is used by now, so
  // its holder tells it to them, and this server tells it to no one.
  if (own !== undefined && !elsewhere) return wait("refresh_token_replaced");
  // REFRESH-D-7, RFC6749-10.4-5, RFC9700-4.14.2-3, OAUTH21-4.3.1-2: two parties have the token, so one of them has it
  // without right.
  return family.jkt === undefined ? end("refresh_token_reused") : refuse("refresh_token_old");
}

/** When the family ends if it is not used again (OAUTH21-4.3.3-2, RFC9700-4.14.2-6). */
export function endOf(family: Family, settings: RefreshSettings): number {
  const { endsAtSeconds, idleEndsAtSeconds = endsAtSeconds } = inForce(family, settings);
  return Math.min(endsAtSeconds, idleEndsAtSeconds);
}

/** REFRESH-D-13: the family with the ends that the user was told, as far as the settings leave them now. */
export function inForce(family: Family, settings: RefreshSettings): Family {
  const { idleEndsAtSeconds, usedAtSeconds } = family;
  const endsAtSeconds = absoluteEnd(family, settings);
  return idleEndsAtSeconds === undefined
    ? { ...family, endsAtSeconds }
    : {
        ...family,
        endsAtSeconds,
        idleEndsAtSeconds: Math.min(idleEndsAtSeconds, usedAtSeconds + settings.idleSeconds),
      };
}

/** REFRESH-D-13, REFRESH-D-12: nothing of the family lives longer. */
export function absoluteEnd(
  { offline, startedAtSeconds, endsAtSeconds }: Family,
  { seconds, briefSeconds }: RefreshSettings,
): number {
  return Math.min(endsAtSeconds, startedAtSeconds + (offline ? seconds : briefSeconds));
}
