/**
 * From a decision to a token: event and row are written if the facts still hold, each proof of the request is used for
 * the first time, and the key was not withdrawn; then the token is signed.
 */
import { lacksOf } from "../audit/columns.ts";
import type { AuditEvent } from "../audit/event.ts";
import { REFRESH_WAIT_SECONDS } from "../limits/people.ts";
import { MODES } from "../modes.ts";
import type { Trace } from "../policy/access.ts";
import type { AskedRequest } from "../policy/decision.ts";
import { likeUnknown } from "../policy/explanation.ts";
import type { BasePorts, Ports, Signer, SigningKey } from "../ports.ts";
import type { Guard, Precondition, TokenRecord } from "../records.ts";
import { type Awaitable, defined, err, ok, type Result, whenReady } from "../result.ts";
import type { Settings } from "../settings/settings.ts";
import { lifetimesOf } from "../spec/refresh-token-expiration.ts";
import type { TokenAnswer } from "../spec/rfc6749.ts";
import type { Json } from "../spec/rfc8259.ts";
import { codeSpentBy, isExchange, issuedEntry, knownOf, withFacts } from "./issued-entry.ts";
import { type Decided, decideOrder, type OrderDenied, toFailure } from "./order/decide-order.ts";
import { failureOf } from "./order/find-job.ts";
import type { FamilyStep, Order } from "./order/order.ts";
import { refuseDisabled } from "./order/refuse-disabled.ts";
import type { PeopleGrants } from "./people.ts";
import {
  assertionReplayed,
  codeReplayed,
  DEFERRAL_RACED,
  exchangeReplayed,
  type Failure,
  grantReplayed,
  proofReplayed,
  REFRESH_RACED,
  type RefusedRequest,
  type Unrecorded,
} from "./refusal.ts";
import { refuseRequest, type TokenRequest } from "./token-request.ts";

/** Facts may change between a decision and its writing; it is then decided anew once, and refused after that. */
const DECISIONS_MAX = 2;
/** Rules of a trace that are recorded, so that no policy makes events of any length. */
const TRACE_MAX = 16;

/**
 * What follows from a condition that did not hold: a replay is refused as one, the request fails, or it is decided
 * anew.
 */
type Lost =
  | { replayed: (event: AuditEvent, order: Order) => RefusedRequest }
  | { failure: Failure }
  | { isEnded: true }
  | { isExhausted: true }
  | { renewsKey: boolean };

/** The conditions of an entry that issues a token. */
type Condition = Guard["kind"] | "family_current" | "row_new";

const RACED = { kind: "throttled", waitSeconds: REFRESH_WAIT_SECONDS } as const;

/** Where several conditions did not hold, the first of these decides what follows. */
const LOST: Record<Condition, Lost> = {
  jti_fresh: { replayed: assertionReplayed },
  code_fresh: {
    replayed: (event, { spends }) => defined<RefusedRequest>({ ...codeReplayed(event), spends }),
  },
  grant_fresh: {
    replayed: (event, order) => (isExchange(order) ? exchangeReplayed(event) : grantReplayed(event)),
  },
  proof_fresh: { replayed: proofReplayed },
  key_stands: { renewsKey: true },
  // REFRESH-D-5: what another request changed meanwhile says nothing of this one, so it may come again.
  family_current: { failure: { ...RACED, reason: REFRESH_RACED } },
  row_new: { failure: { ...RACED, reason: DEFERRAL_RACED } },
  // RFC8693-2.1-25: a second decision would not change that an ending reaches what is issued.
  not_ended: { isEnded: true },
  // JOB-D-11: neither would it lower a count.
  job_below: { isExhausted: true },
  consent_current: { renewsKey: false },
};

function lostBy(failed: readonly Precondition[]): Lost {
  const found = Object.entries(LOST).find(([condition]) => failed.some((one) => one === condition));
  return found?.[1] ?? LOST.consent_current;
}

type Issued = Result<TokenAnswer, RefusedRequest | Unrecorded>;

export type IssuePorts = BasePorts & Pick<Ports, "endings" | "facts" | "journal" | "signer" | "grantSigner">;

export function issue(
  ports: IssuePorts,
  asking: TokenRequest,
  order: Order,
  people: Pick<PeopleGrants, "ask"> | undefined,
): Awaitable<Issued> {
  const request = order.access.forWorkload ? withWorkload(asking, order) : asking;
  const { policy } = ports.settings();
  const row = MODES[order.access.mode];
  const nowSeconds = ports.clock.nowSeconds();
  /** `read`: what the decision read, where the policy itself refused for this reason. */
  const refusal = (
    failure: Failure,
    trace: Trace,
    asked = order.resumes?.asked,
    read?: AskedRequest,
  ): RefusedRequest => {
    const shown = trace.length > 0 ? (trace.slice(0, TRACE_MAX) as unknown as Json) : undefined;
    const meant = likeUnknown(policy, order.access);
    const said = defined<Failure>({
      ...failure,
      lacks: lacksOf(trace).join(" ") || undefined,
      meant: meant?.map(({ known }) => known).join(" "),
    });
    const refused = refuseRequest(request, said, {
      ...knownOf(request, order),
      policy: defined({ digest: policy.digest, asked, meant, trace: shown }),
    });
    const spends = codeSpentBy(order);
    const event = read ? withFacts(ports, refused.error.event, read) : refused.error.event;
    return defined<RefusedRequest>({ ...refused.error, event, spends, ...order.resumes?.ends("refused") });
  };
  const refuse = (...refused: Parameters<typeof refusal>): Result<never, RefusedRequest> =>
    err(refusal(...refused));
  const refuseEnded = (trace: Trace): Awaitable<Result<never, RefusedRequest>> => {
    const ended = toFailure(order, { kind: "token_refused", reason: "ended" });
    return whenReady(refuseDisabled(ports, order), (disabled) => refuse(disabled ?? ended, trace));
  };
  const deny = (denied: OrderDenied, decisions: number): Awaitable<Issued> => {
    const { failure, trace, missing, notAsked, asked: read } = denied;
    if (missing === undefined || row.asks !== "by_link" || people === undefined) {
      return refuse(failure, trace, notAsked && { refused: notAsked }, read);
    }
    return people.ask(ports, request, order, { failure, trace, missing }, nowSeconds, {
      refusal: (told, shown, asked) =>
        refusal(told, shown, asked, told.reason === failure.reason ? read : undefined),
      refuseEnded,
      lost: (failed, event) => lost(failed, event, decisions),
    });
  };
  const decideAndWrite = (decisions: number): Awaitable<Issued> =>
    whenReady(decideOrder(ports, order, nowSeconds), (decided) => {
      if (!decided.ok) return deny(decided.error, decisions);
      const { allowed, token } = decided.value;
      const signer = token.kind.tokenType === "N_A" ? ports.grantSigner : ports.signer;
      return whenReady(signer.current(allowed.target.alg), (key) =>
        write(decided.value, signer, key, decisions),
      );
    });
  const write = (decided: Decided, signer: Signer, key: SigningKey, decisions: number): Awaitable<Issued> => {
    const { kind, payload } = decided.token;
    const step = order.user?.grant.step(decided.allowed);
    // RCPT-D-8: what is signed is known before it is signed.
    const fingerprint = ports.hash.sha256(signer.input(key, kind.typ, payload));
    const signing = { kid: key.kid, fingerprint };
    const entry = issuedEntry(ports, request, order, decided, signing, step, nowSeconds);
    // AUDIT-D-1, PROD-6.2-1: event and row are durable before there is a token; REFRESH-D-4: so is the refresh token.
    return whenReady(
      ports.journal.record(entry),
      (recorded): Awaitable<Issued> =>
        recorded.ok
          ? whenReady(signer.sign(key, kind.typ, payload), (signed) =>
              ok(answer(ports.settings(), order, decided, signed, entry.token, step)),
            )
          : lost(recorded.error, entry.event, decisions, signer),
    );
  };
  const lost = (
    failed: readonly Precondition[],
    event: AuditEvent,
    decisions: number,
    signer?: Signer,
  ): Awaitable<Issued> => {
    const lost = lostBy(failed);
    if ("replayed" in lost) return err(lost.replayed(event, order));
    if ("failure" in lost) return refuse(lost.failure, []);
    if ("isExhausted" in lost) return refuse(failureOf(order, "job_exhausted"), []);
    if ("isEnded" in lost) return refuseEnded([]);
    return whenReady(lost.renewsKey ? signer?.renew() : undefined, () =>
      decisions < DECISIONS_MAX
        ? decideAndWrite(decisions + 1)
        : refuse(toFailure(order, { kind: "token_refused", reason: "facts_changed" }), []),
    );
  };
  return decideAndWrite(1);
}

/** PLAT-D-10, PLAT-D-17: events have the workload whose grant the client brought. */
const withWorkload = (
  { client, ...request }: TokenRequest,
  {
    access: { workload },
    ground: {
      platforms: [platform],
    },
  }: Order,
): TokenRequest => ({
  ...request,
  client: defined<TokenRequest["client"]>({ ...client, workload, platform }),
});

/** RFC6749-5.1-2, RFC6749-5.1-4: the answer always has lifetime and scope, both from what was written. */
function answer(
  { tellsRefreshEnds }: Settings,
  order: Order,
  { token: { kind }, jobId, allowed }: Decided,
  signed: string,
  token: TokenRecord,
  step: FamilyStep | undefined,
): TokenAnswer {
  // JOB-D-15: who only holds a token of the job is told no more of it than the target sees.
  const { job } = order.access;
  const id = order.job?.isAgents ? job?.id : jobId;
  // RTE-D-4: in each success of a code or a refresh token, with a new refresh token or without, and in no other answer.
  const until = [allowed.consent?.expiresAtSeconds, job?.bounds.notAfterSeconds];
  const lasts = tellsRefreshEnds && step ? lifetimesOf(step.ends, until, token.issuedAtSeconds) : undefined;
  return defined<TokenAnswer>({
    access_token: signed, // RFC8693-2.2.1-2, IDC-2.3.3-1, IDJAG-4.3.4-1
    issued_token_type: isExchange(order) ? kind.issuedTokenType : undefined, // RFC8693-2.2.1-3, FEDC-D-2
    token_type: kind.tokenType, // RFC8693-2.2.1-4
    expires_in: token.expiresAtSeconds - token.issuedAtSeconds, // IDJAG-4.3.4-4
    scope: token.scope, // IDJAG-4.3.4-2
    authorization_details: token.details, // RFC9396-7-1, IDJAG-4.3.4-3
    refresh_token: step?.gives,
    refresh_token_timeout: lasts?.refresh_token_timeout,
    authorization_expires_in: lasts?.authorization_expires_in,
    mandate_job_id: id,
    mandate_job_expires_at: id === undefined ? undefined : job?.bounds.notAfterSeconds,
    resource: order.manner.tellsResource ? token.audience : undefined, // IDJAG-4.4.1-7
  });
}
