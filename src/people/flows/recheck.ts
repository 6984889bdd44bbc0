/**
 * Whether the provider of a user still stands by them: it is asked before a refresh once its last word is old, once for
 * all families of the user and all instances.
 */
import type { AuditEvent } from "../../audit/event.ts";
import { describeFamily } from "../../flows/audit-fields.ts";
import { subjectOf } from "../../flows/order/subject.ts";
import type { AuditedRequest, Failure } from "../../flows/refusal.ts";
import { RECHECK_AGAIN_SECONDS, WITHDRAWN_AT_ONCE } from "../../limits/people.ts";
import type { BasePorts } from "../../ports.ts";
import type { Family, PresentedFamily, Recheck } from "../../records.ts";
import type { Result } from "../../result.ts";
import { defined, err, ok } from "../../result.ts";
import type { Provider, SignInSettings } from "../../settings/settings.ts";
import { parseJws } from "../../spec/rfc7515.ts";
import type { PeoplePorts, ProviderFailure } from "../ports.ts";
import type { ProviderTokens } from "../spec/oidc.ts";
import { checkRefreshedIdToken } from "../spec/oidc.ts";

export type RecheckPorts = BasePorts &
  Pick<PeoplePorts, "consents" | "journal" | "providers" | "providerSecrets" | "rechecks">;

/** `gone`: the provider says that it does not know the user's sign-in any more. */
type Lapsed = { failure: Failure; gone?: true };

const STANDS = ok(undefined);

export async function askProvider(
  ports: RecheckPorts,
  signIn: SignInSettings,
  request: AuditedRequest,
  { family, recheck }: PresentedFamily,
): Promise<Result<undefined, Lapsed>> {
  const { seconds, graceSeconds, unaskedSeconds } = signIn.recheck;
  const nowSeconds = ports.clock.nowSeconds();
  // RECHECK-D-1: a sign-in is a word of the provider too.
  const ageSeconds = nowSeconds - (recheck?.confirmedAtSeconds ?? family.startedAtSeconds);
  if (ageSeconds < seconds) return STANDS;
  const way = recheck && wayToAsk(ports, signIn, recheck);
  // RECHECK-D-4: where the provider cannot be asked, the user's next sign-in on any page of ours is its answer.
  if (way === undefined) return ageSeconds < unaskedSeconds ? STANDS : TOO_OLD;
  // RECHECK-D-3: a provider that does not answer hurts no user for a while; then nothing is given until it does.
  const unanswered = ageSeconds < seconds + graceSeconds ? STANDS : SILENT;
  const { askedAtSeconds, version } = way.recheck;
  if (nowSeconds < askedAtSeconds + RECHECK_AGAIN_SECONDS) return unanswered;
  // RECHECK-D-2: of several refreshes at once, on whatever instances, one asks.
  const asking = { ...way.recheck, version: version + 1, askedAtSeconds: nowSeconds };
  if (!(await ports.rechecks.replace(asking))) return unanswered;
  const { name } = way.provider;
  const answer = checkSameUser(ports, way.provider, family, await ports.providers.confirm(name, way.secret));
  const by = eventOf(ports, request, name, family);
  if (answer.ok) {
    await keepConfirmed(ports, asking, answer.value);
    await ports.journal.record({ event: { ...by, outcome: "allow", reason: "provider_confirmed" } });
    return STANDS;
  }
  const { reason, said } = answer.error;
  if (reason !== "provider_denies_user") {
    const detail = { ...by.detail, ...said, serves: unanswered.ok };
    await ports.journal.record({ event: { ...by, outcome: "error", reason, detail } });
    return unanswered;
  }
  // Where the user has signed in meanwhile, the answer is about a sign-in before that.
  if (!(await keepDenied(ports, asking))) return STANDS;
  // RECHECK-D-6: an answer that got lost may have used the refresh token up, which says nothing of the user.
  const isCertain = askedAtSeconds <= way.recheck.confirmedAtSeconds;
  if (signIn.recheck.endsConsents && isCertain) await withdrawAll(ports, by, family);
  return err({ failure: { kind: "grant_refused", reason }, gone: true });
}

const TOO_OLD = err<Lapsed>({ failure: { kind: "grant_refused", reason: "sign_in_too_old" } });
const SILENT = err<Lapsed>({
  failure: { kind: "provider_unreachable", reason: "provider_silent", waitSeconds: RECHECK_AGAIN_SECONDS },
});

/** Undefined where the provider gave nothing to ask it by, or the operator wants it asked by sign-ins alone. */
function wayToAsk(
  { providerSecrets }: Pick<PeoplePorts, "providerSecrets">,
  { providers }: SignInSettings,
  recheck: Recheck,
): { provider: Provider; recheck: Recheck; secret: string } | undefined {
  const provider = providers.get(recheck.provider);
  if (provider === undefined || provider.recheck === "visit" || recheck.sealed === undefined)
    return undefined;
  const secret = providerSecrets.open(recheck.origin, recheck.sealed);
  return secret === undefined ? undefined : { provider, recheck, secret };
}

const keepConfirmed = (
  { rechecks, providerSecrets, clock }: Pick<PeoplePorts, "rechecks" | "providerSecrets" | "clock">,
  asked: Recheck,
  { refreshToken }: ProviderTokens,
): Promise<boolean> =>
  rechecks.replace(
    defined<Recheck>({
      ...asked,
      version: asked.version + 1,
      confirmedAtSeconds: clock.nowSeconds(),
      sealed: refreshToken === undefined ? asked.sealed : providerSecrets.seal(asked.origin, refreshToken),
    }),
  );

/** The row refuses by itself from now on, even if this process dies before the ending is written. */
function keepDenied({ rechecks }: Pick<PeoplePorts, "rechecks">, asked: Recheck): Promise<boolean> {
  const { sealed: _, ...denied } = asked;
  return rechecks.replace({ ...denied, version: asked.version + 1, confirmedAtSeconds: 0 });
}

/** OIDC-12.2-1: what the provider answers is about this user, or it is no answer. */
function checkSameUser(
  { settings }: BasePorts,
  { issuer, clientId }: Provider,
  { origin }: Family,
  answer: Result<ProviderTokens, ProviderFailure>,
): Result<ProviderTokens, ProviderFailure> {
  if (!answer.ok || answer.value.idToken === undefined) return answer;
  const trusted = settings().trustedIssuers.get(issuer);
  const parsed = parseJws(answer.value.idToken);
  const sub = parsed.ok && trusted !== undefined ? subjectOf(trusted, parsed.value.claims) : undefined;
  const isSame =
    parsed.ok &&
    sub?.ok &&
    sub.value === origin.sub &&
    checkRefreshedIdToken(parsed.value.claims, { issuer, clientId });
  return isSame ? answer : err({ reason: "provider_answer_malformed" });
}

type RecheckEvent = Omit<AuditEvent, "outcome" | "reason">;

const eventOf = (
  { settings }: BasePorts,
  request: AuditedRequest,
  provider: string,
  family: Family,
): RecheckEvent => ({
  type: "user.rechecked",
  request,
  ...describeFamily(family),
  grant: { id: family.id },
  policy: { digest: settings().policy.digest },
  detail: { provider },
});

/** Consents are withdrawn in stretches, each durable before the next. */
async function withdrawAll(ports: RecheckPorts, by: RecheckEvent, { origin }: Family): Promise<void> {
  const atSeconds = ports.clock.nowSeconds();
  const { digest } = ports.settings().policy;
  const withdraw = (consent: string) =>
    ports.journal.record({
      event: {
        ...by,
        type: "consent.withdrawn",
        outcome: "allow",
        reason: "provider_denies_user",
        policy: { digest, consent },
      },
      consent: { withdraw: consent, atSeconds },
    });
  let afterId: string | undefined;
  do {
    const page = defined<Page>({ nowSeconds: atSeconds, afterId, limit: WITHDRAWN_AT_ONCE });
    const standing = await ports.consents.standing(origin, page);
    await Promise.all(standing.map(({ id }) => withdraw(id)));
    afterId = standing.at(-1)?.id;
  } while (afterId !== undefined);
}

type Page = Parameters<PeoplePorts["consents"]["standing"]>[1];
