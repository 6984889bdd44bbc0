/**
 * Whether the provider of a user still stands by them: it is asked before a refresh or a code gives anything, once its
 * last word is old, once for all that the user has and all instances.
 */
import type { AuditEvent } from "../../audit/event.ts";
import { endingEntry } from "../../flows/endings.ts";
import { foreignRoot, subjectOf } from "../../flows/order/subject.ts";
import type { AuditedRequest, Failure, RefusedRequest } from "../../flows/refusal.ts";
import { verifySigned } from "../../flows/subject-token.ts";
import { type Known, refuseRequest, type TokenRequest } from "../../flows/token-request.ts";
import { RECHECK_AGAIN_SECONDS, RECHECK_LOOK_MS, RECHECK_WAIT_MS } from "../../limits/people.ts";
import type { Origin } from "../../policy/access.ts";
import type { ClaimsWord } from "../../policy/claims.ts";
import { type ForeignRoot, subjectEmail } from "../../policy/endings.ts";
import type { BasePorts } from "../../ports.ts";
import type { Entry, Recheck } from "../../records.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Provider, SignInSettings } from "../../settings/settings.ts";
import { type Jws, parseJws } from "../../spec/rfc7515.ts";
import { JWT_TYPES } from "../../spec/rfc8725.ts";
import type { PeoplePorts, ProviderFailure } from "../ports.ts";
import { checkRefreshedIdToken, type ProviderTokens } from "../spec/oidc.ts";
import { eachStanding } from "./consent.ts";
import { hearClaims, isHeard, keepWord } from "./heard-claims.ts";

export type RecheckPorts = BasePorts &
  Pick<
    PeoplePorts,
    | "consents"
    | "endings"
    | "facts"
    | "issuers"
    | "journal"
    | "verifier"
    | "providers"
    | "providerSecrets"
    | "rechecks"
    | "timers"
  >;

/** A user in whose name a request asks for a token. */
export type Vouched = {
  origin: Origin;
  /** What their provider said last; absent where nothing is on record. */
  recheck: Recheck | undefined;
  /** When they showed themselves, where nothing of their provider is on record. */
  sinceSeconds: number;
  /** How old that may be where the provider cannot be asked. */
  unaskedSeconds: number;
  /** For the audit trail. */
  known: Known;
};

/** `gone`: the provider does not know the user's sign-in any more, so all that they have here ends. */
type Lapsed = { failure: Failure; gone?: true };

const STANDS = ok(undefined);
const TOO_OLD = err<Lapsed>({ failure: { kind: "grant_refused", reason: "sign_in_too_old" } });
const silent = (waitSeconds: number) =>
  err<Lapsed>({ failure: { kind: "provider_unreachable", reason: "provider_silent", waitSeconds } });
const WANTED = err<Lapsed>({ failure: { kind: "grant_refused", reason: "provider_wants_user" } });
const GONE = err<Lapsed>({ failure: { kind: "grant_refused", reason: "provider_denies_user" }, gone: true });

/**
 * What an answer other than yes says of the user: that they are gone, that they must sign in anew, or nothing, so that the
 * last word serves on for a while.
 */
const SAYS = {
  // RECHECK-D-5
  provider_denies_user: "gone",
  // RECHECK-D-8
  provider_wants_user: "sign_in",
  // RECHECK-D-3
  provider_refused: "nothing",
  provider_unavailable: "nothing",
  provider_answer_malformed: "nothing",
} as const satisfies Record<ProviderFailure["reason"], "gone" | "sign_in" | "nothing">;

export async function askProvider(
  ports: RecheckPorts,
  signIn: SignInSettings,
  request: AuditedRequest,
  user: Vouched,
): Promise<Result<undefined, Lapsed>> {
  const { origin, recheck, sinceSeconds, unaskedSeconds } = user;
  const { seconds, graceSeconds } = signIn.recheck;
  if (recheck !== undefined && isDenied(recheck))
    return end(ports, signIn, recheck, eventOf(ports, request, recheck.provider, user));
  const nowSeconds = ports.clock.nowSeconds();
  // A time that lies ahead is of a clock that was wrong, and as old as it is far.
  const since = (atSeconds: number): number => Math.abs(nowSeconds - atSeconds);
  // RECHECK-D-1: a sign-in is a word of the provider too.
  const ageSeconds = since(recheck?.confirmedAtSeconds ?? sinceSeconds);
  const claims = await claimsDue(ports, origin, recheck);
  if (ageSeconds < seconds && claims === undefined) return STANDS;
  const way = recheck && wayToAsk(ports, signIn, recheck);
  // RECHECK-D-4: where the provider cannot be asked, the user's next sign-in on any page of ours is its answer.
  if (way === undefined) return ageSeconds < unaskedSeconds ? STANDS : TOO_OLD;
  const { recheck: last } = way;
  // RECHECK-D-3: a provider that does not answer hurts no user for a while; then nothing is given until it does.
  const serves = ageSeconds < seconds + graceSeconds ? STANDS : undefined;
  const unanswered = last.confirmedAtSeconds === 0 ? WANTED : serves;
  // RECHECK-D-2: of several refreshes at once, on whatever instances, one asks; the others go on, or wait for its answer.
  const agoSeconds = since(last.askedAtSeconds);
  const isRecent = agoSeconds < RECHECK_AGAIN_SECONDS && claims !== "changed";
  const asked = { ...last, version: last.version + 1, askedAtSeconds: nowSeconds };
  if (!isRecent && (await ports.rechecks.replace(asked))) {
    const about = { ...way, asked, event: eventOf(ports, request, way.provider.name, user) };
    return question(ports, signIn, about, unanswered ?? silent(RECHECK_AGAIN_SECONDS));
  }
  if (unanswered !== undefined) return unanswered;
  const isUnderWay = !isRecent || agoSeconds * 1000 < RECHECK_WAIT_MS;
  const answered = isUnderWay ? await answerToOther(ports, last) : undefined;
  return answered === undefined
    ? silent(RECHECK_AGAIN_SECONDS - (isRecent ? agoSeconds : 0))
    : askProvider(ports, signIn, request, { ...user, recheck: answered });
}

/**
 * PCL-D-8: what the provider said of the user's claims is heard anew once half of its time is over, or its issuer says that it
 * changed since it was asked.
 */
async function claimsDue(
  { settings, facts, clock }: RecheckPorts,
  origin: Origin,
  recheck: Recheck | undefined,
): Promise<"old" | "changed" | undefined> {
  if (!isHeard(settings(), origin.iss)) return undefined;
  const word = await facts.claims(origin);
  if (word?.stale) return word.atSeconds > (recheck?.askedAtSeconds ?? 0) ? "changed" : "old";
  const { claimsMaxSeconds = 0 } = settings().trustedIssuers.get(origin.iss) ?? {};
  const ageSeconds = clock.nowSeconds() - (word?.atSeconds ?? 0);
  return ageSeconds > claimsMaxSeconds / 2 ? "old" : undefined;
}

/** RECHECK-D-5: all that the user has here ends in one step with the event that tells what the provider said. */
export function refuseLapsed(
  ports: Pick<PeoplePorts, "hash" | "clock">,
  request: TokenRequest,
  { origin, known }: Vouched,
  { failure, gone }: Lapsed,
): { ok: false; error: RefusedRequest } {
  const refusal = refuseRequest(request, failure, known);
  if (!gone) return refusal;
  const by = { ...refusal.error.event, type: "refresh.ended" } as const;
  const { ending, event } = endingEntry(ports, { by: "subject", ...origin }, by);
  return err({ ...refusal.error, event: { ...event, outcome: "deny" }, ending });
}

type Question = { provider: Provider; secret: string; recheck: Recheck; asked: Recheck; event: RecheckEvent };

/** `unanswered` is what an answer comes to that says nothing of the user. */
async function question(
  ports: RecheckPorts,
  signIn: SignInSettings,
  { provider, secret, recheck: last, asked, event }: Question,
  unanswered: Result<undefined, Lapsed>,
): Promise<Result<undefined, Lapsed>> {
  const answer = await ports.providers.confirm(provider.name, secret);
  const about = checkSameUser(ports, provider, asked.origin, answer);
  if (about.ok) {
    const { refreshToken = secret, root, jws } = about.value;
    const word = await hear(ports, provider, asked.origin, about.value, jws);
    const claims = word && (await keepWord(ports, asked.origin, word, event.request));
    await ports.rechecks.replace(confirmed(ports, provider, asked, refreshToken));
    // PCL-D-12: what it says now is its latest token.
    const email = subjectEmail(ports.hash.sha256, asked.origin, root, asked.expiresAtSeconds);
    const told = { ...event, outcome: "allow", reason: "provider_confirmed" } as const;
    await ports.journal.record(defined<Entry>({ event: told, email, claims }));
    return STANDS;
  }
  const { reason, said } = about.error;
  const says = SAYS[reason];
  if (says === "gone") {
    const row = denied(last, asked);
    // Where the user has signed in meanwhile, the answer is about a sign-in before that.
    return (await ports.rechecks.replace(row)) ? end(ports, signIn, row, event) : STANDS;
  }
  const after = says === "sign_in" ? WANTED : unanswered;
  if (says === "sign_in") await ports.rechecks.replace(unconfirmed(asked));
  const detail = { ...event.detail, ...said, serves: after.ok };
  await ports.journal.record({ event: { ...event, outcome: "error", reason, detail } });
  return after;
}

/** PCL-D-1: claims are taken of an ID token whose signature is verified, which the answer to a refresh needs for nothing else. */
async function hear(
  ports: RecheckPorts,
  provider: Provider,
  origin: Origin,
  tokens: ProviderTokens,
  jws: Jws | undefined,
): Promise<ClaimsWord | undefined> {
  const trusted = ports.settings().trustedIssuers.get(provider.issuer);
  if (trusted === undefined || !isHeard(ports.settings(), origin.iss)) return undefined;
  const by = { ...trusted, algorithms: [provider.idTokenAlg] };
  const signed = jws && (await verifySigned(ports, by, JWT_TYPES.idToken, jws));
  return hearClaims(ports, provider, origin, tokens, signed?.ok ? jws?.claims : undefined);
}

/** What the row says once the question of another request is answered; undefined where that takes too long. */
async function answerToOther(
  { rechecks, timers }: Pick<PeoplePorts, "rechecks" | "timers">,
  { origin, confirmedAtSeconds }: Recheck,
): Promise<Recheck | undefined> {
  for (let waitedMs = 0; waitedMs < RECHECK_WAIT_MS; waitedMs += RECHECK_LOOK_MS) {
    await new Promise<void>((resolve) => void timers.after(RECHECK_LOOK_MS, resolve));
    const recheck = await rechecks.find(origin);
    if (recheck?.confirmedAtSeconds !== confirmedAtSeconds) return recheck;
  }
  return undefined;
}

/** Undefined where the provider gave nothing to ask it by, or the operator wants it asked by sign-ins alone. */
function wayToAsk(
  { providerSecrets }: Pick<PeoplePorts, "providerSecrets">,
  { providers }: SignInSettings,
  recheck: Recheck,
): { provider: Provider; recheck: Recheck; secret: string } | undefined {
  const provider = providers.get(recheck.provider);
  if (provider === undefined || provider.recheck === "visit" || recheck.sealed === undefined)
    return undefined;
  const secret = providerSecrets.open(provider, recheck.origin.sub, recheck.sealed);
  return secret === undefined ? undefined : { provider, recheck, secret };
}

/** RECHECK-D-7: a token that stays is encrypted again as well, since the key that it was encrypted with may be replaced. */
const confirmed = (
  { providerSecrets, clock }: Pick<PeoplePorts, "providerSecrets" | "clock">,
  provider: Provider,
  asked: Recheck,
  refreshToken: string,
): Recheck => ({
  ...asked,
  version: asked.version + 1,
  confirmedAtSeconds: clock.nowSeconds(),
  sealed: providerSecrets.seal(provider, asked.origin.sub, refreshToken),
});

const unconfirmed = (asked: Recheck): Recheck => ({
  ...asked,
  version: asked.version + 1,
  confirmedAtSeconds: 0,
});

/**
 * RECHECK-D-6: an answer that got lost may have used the refresh token up, so that the next one says nothing of the user;
 * the time of that question is kept.
 */
function denied({ askedAtSeconds, confirmedAtSeconds }: Recheck, asked: Recheck): Recheck {
  const { sealed: _, ...row } = unconfirmed(asked);
  return { ...row, askedAtSeconds: askedAtSeconds <= confirmedAtSeconds ? 0 : askedAtSeconds };
}

const isDenied = ({ confirmedAtSeconds, sealed }: Recheck): boolean =>
  confirmedAtSeconds === 0 && sealed === undefined;

/**
 * RECHECK-D-5: what the user has ends with the refusal. If the process dies before that is written, the row is still
 * denied, and the next request ends it.
 */
async function end(
  ports: RecheckPorts,
  { recheck: { endsConsents } }: SignInSettings,
  { askedAtSeconds, origin }: Recheck,
  event: RecheckEvent,
): Promise<Result<undefined, Lapsed>> {
  if (endsConsents && askedAtSeconds === 0) await withdrawAll(ports, event, origin);
  return GONE;
}

type Confirmed = ProviderTokens & { root?: ForeignRoot; jws?: Jws };

/** OIDC-12.2-1: what the provider answers is about this user, or it is no answer. */
function checkSameUser(
  { settings }: BasePorts,
  { issuer, clientId }: Provider,
  { sub }: Origin,
  answer: Result<ProviderTokens, ProviderFailure>,
): Result<Confirmed, ProviderFailure> {
  if (!answer.ok || answer.value.idToken === undefined) return answer;
  const trusted = settings().trustedIssuers.get(issuer);
  const parsed = parseJws(answer.value.idToken);
  const named = parsed.ok && trusted !== undefined ? subjectOf(trusted, parsed.value.claims) : undefined;
  const isSame =
    parsed.ok &&
    named?.ok &&
    named.value === sub &&
    checkRefreshedIdToken(parsed.value.claims, { issuer, clientId });
  if (!isSame || trusted === undefined) return err({ reason: "provider_answer_malformed" });
  return ok({ ...answer.value, root: foreignRoot(trusted, parsed.value.claims), jws: parsed.value });
}

type RecheckEvent = Omit<AuditEvent, "outcome" | "reason"> & Required<Pick<AuditEvent, "policy">>;

const eventOf = (
  { settings }: BasePorts,
  request: AuditedRequest,
  provider: string,
  { known: { subject, grant } }: Vouched,
): RecheckEvent => ({
  ...defined<Known>({ subject, grant }),
  type: "user.rechecked",
  request,
  policy: { digest: settings().policy.digest },
  detail: { provider },
});

async function withdrawAll(
  ports: Pick<PeoplePorts, "clock" | "consents" | "journal">,
  { policy, ...event }: RecheckEvent,
  origin: Origin,
): Promise<void> {
  const atSeconds = ports.clock.nowSeconds();
  const told = { ...event, type: "consent.withdrawn", outcome: "allow" } as const;
  await eachStanding(ports, origin, (consent) =>
    ports.journal.record({
      event: { ...told, reason: "provider_denies_user", policy: { ...policy, consent } },
      consent: { withdraw: consent, atSeconds },
    }),
  );
}
