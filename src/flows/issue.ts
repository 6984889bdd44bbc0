/**
 * From a decision to a token: event and row are written if the facts still hold, each proof of the request is used for
 * the first time, and the key was not withdrawn; then the token is signed.
 */
import { lacksOf } from "../audit/columns.ts";
import type { AskedUser, AuditEvent } from "../audit/event.ts";
import { MODES } from "../modes.ts";
import type { Trace } from "../policy/access.ts";
import type { AskedRequest } from "../policy/decision.ts";
import { likeUnknown } from "../policy/explanation.ts";
import type { BasePorts, Ports, Signer, SigningKey } from "../ports.ts";
import type { Guard, Precondition, TokenRecord } from "../records.ts";
import { type Awaitable, defined, err, ok, type Result, whenReady } from "../result.ts";
import type { TokenAnswer } from "../spec/rfc6749.ts";
import type { Json } from "../spec/rfc8259.ts";
import type { Decided } from "./build-token.ts";
import { codeSpentBy, type Issuing, isExchange, issuedEntry, knownOf, withFacts } from "./issued-entry.ts";
import { jobExhausted } from "./options/jobs.ts";
import type { Part, TokenOption } from "./options/option.ts";
import { deferralLost, refreshLost } from "./options/refresh-and-deferral.ts";
import { joined, partOf } from "./options.ts";
import { decideOrder, type OrderDenied } from "./order/decide-order.ts";
import type { Order } from "./order/order.ts";
import { refuseDisabled } from "./order/refuse-disabled.ts";
import type { PeopleGrants } from "./people.ts";
import {
  assertionReplayed,
  codeReplayed,
  exchangeReplayed,
  type Failure,
  grantReplayed,
  proofReplayed,
  type RefusedRequest,
  type Unrecorded,
} from "./refusal.ts";
import { refuseRequest, type TokenRequest, toFailure } from "./token-request.ts";

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
  | { failure: (order: Order) => Failure }
  | { isEnded: true }
  | { renewsKey: boolean };

/** The conditions of an entry that issues a token. */
type Condition = Guard["kind"] | "family_current" | "row_new";

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
  family_current: { failure: refreshLost },
  row_new: { failure: deferralLost },
  // RFC8693-2.1-25: a second decision would not change that an ending reaches what is issued.
  not_ended: { isEnded: true },
  job_below: { failure: jobExhausted },
  consent_current: { renewsKey: false },
};

function lostBy(failed: readonly Precondition[]): Lost {
  const found = Object.entries(LOST).find(([condition]) => failed.some((one) => one === condition));
  return found?.[1] ?? LOST.consent_current;
}

type Issued = Result<TokenAnswer, RefusedRequest | Unrecorded>;

export type IssuePorts = BasePorts & Pick<Ports, "endings" | "facts" | "journal" | "signer" | "grantSigner">;

type Way = Issuing & { ports: IssuePorts; people: Pick<PeopleGrants, "ask"> | undefined };

export function issue(
  ports: IssuePorts,
  asking: TokenRequest,
  order: Order,
  options: readonly TokenOption[],
  people: Way["people"],
): Awaitable<Issued> {
  const request = options.reduce((told, { tell }) => tell?.(told, order) ?? told, asking);
  return decideAndWrite({ ports, request, order, options, people, nowSeconds: ports.clock.nowSeconds() }, 1);
}

function decideAndWrite(way: Way, decisions: number): Awaitable<Issued> {
  const { ports, order, options, nowSeconds } = way;
  return whenReady(decideOrder(ports, order, nowSeconds, options), (decided) => {
    if (!decided.ok) return deny(way, decided.error, decisions);
    const { allowed, token } = decided.value;
    const signer = token.kind.tokenType === "N_A" ? ports.grantSigner : ports.signer;
    return whenReady(signer.current(allowed.target.alg), (key) =>
      write(way, decided.value, signer, key, decisions),
    );
  });
}

function deny(way: Way, denied: OrderDenied, decisions: number): Awaitable<Issued> {
  const { failure, trace, missing, notAsked, asked: read } = denied;
  const { ports, request, order, people, nowSeconds } = way;
  if (missing === undefined || MODES[order.access.mode].asks !== "by_link" || people === undefined) {
    return err(refusal(way, failure, trace, notAsked && { refused: notAsked }, read));
  }
  return people.ask(ports, request, order, { failure, trace, missing }, nowSeconds, {
    refusal: (told, shown, asked) =>
      refusal(way, told, shown, asked, told.reason === failure.reason ? read : undefined),
    refuseEnded: (shown) => refuseEnded(way, shown),
    lost: (failed, event) => lost(way, failed, event, decisions),
  });
}

function write(
  way: Way,
  decided: Decided,
  signer: Signer,
  key: SigningKey,
  decisions: number,
): Awaitable<Issued> {
  const { ports, order, options, nowSeconds } = way;
  const { kind, payload } = decided.token;
  const part = partOf(ports, options, order, decided, nowSeconds);
  // RCPT-D-8: what is signed is known before it is signed.
  const fingerprint = ports.hash.sha256(signer.input(key, kind.typ, payload));
  const entry = issuedEntry(ports, way, decided, part, { kid: key.kid, fingerprint });
  // AUDIT-D-1, PROD-6.2-1: event and row are durable before there is a token; REFRESH-D-4: so is the refresh token.
  return whenReady(
    ports.journal.record(entry),
    (recorded): Awaitable<Issued> =>
      recorded.ok
        ? whenReady(signer.sign(key, kind.typ, payload), (signed) =>
            ok(answer(order, decided, signed, entry.token, part)),
          )
        : lost(way, recorded.error, entry.event, decisions, signer),
  );
}

function lost(
  way: Way,
  failed: readonly Precondition[],
  event: AuditEvent,
  decisions: number,
  signer?: Signer,
): Awaitable<Issued> {
  const { order } = way;
  const follows = lostBy(failed);
  if ("replayed" in follows) return err(follows.replayed(event, order));
  if ("failure" in follows) return err(refusal(way, follows.failure(order), []));
  if ("isEnded" in follows) return refuseEnded(way, []);
  return whenReady(follows.renewsKey ? signer?.renew() : undefined, () =>
    decisions < DECISIONS_MAX
      ? decideAndWrite(way, decisions + 1)
      : err(refusal(way, toFailure(order, { kind: "token_refused", reason: "facts_changed" }), [])),
  );
}

function refuseEnded(way: Way, trace: Trace): Awaitable<Result<never, RefusedRequest>> {
  const ended = toFailure(way.order, { kind: "token_refused", reason: "ended" });
  return whenReady(refuseDisabled(way.ports, way.order), (disabled) =>
    err(refusal(way, disabled ?? ended, trace)),
  );
}

/** `read`: what the decision read, where the policy itself refused for this reason. */
function refusal(
  way: Way,
  failure: Failure,
  trace: Trace,
  asked?: AskedUser,
  read?: AskedRequest,
): RefusedRequest {
  const { ports, request, order, options } = way;
  const { policy } = ports.settings();
  const shown = trace.length > 0 ? (trace.slice(0, TRACE_MAX) as unknown as Json) : undefined;
  const meant = likeUnknown(policy, order.access);
  const said = defined<Failure>({
    ...failure,
    lacks: lacksOf(trace).join(" ") || undefined,
    meant: meant?.map(({ known }) => known).join(" "),
  });
  const known = knownOf(way);
  const refused = refuseRequest(request, said, {
    ...known,
    policy: defined({
      digest: policy.digest,
      asked: asked ?? known.policy?.asked,
      meant,
      trace: shown,
    }),
  });
  const event = read ? withFacts(ports, refused.error.event, read) : refused.error.event;
  const changes = joined(options.map(({ refuse }) => refuse?.(order)));
  return defined<RefusedRequest>({ ...refused.error, event, spends: codeSpentBy(order), ...changes });
}

/** RFC6749-5.1-2, RFC6749-5.1-4: the answer always has lifetime and scope, both from what was written. */
function answer(
  order: Order,
  { token: { kind } }: Decided,
  signed: string,
  token: TokenRecord,
  part: Part,
): TokenAnswer {
  return defined<TokenAnswer>({
    access_token: signed, // RFC8693-2.2.1-2, IDC-2.3.3-1, IDJAG-4.3.4-1
    issued_token_type: isExchange(order) ? kind.issuedTokenType : undefined, // RFC8693-2.2.1-3, FEDC-D-2
    token_type: kind.tokenType, // RFC8693-2.2.1-4
    expires_in: token.expiresAtSeconds - token.issuedAtSeconds, // IDJAG-4.3.4-4
    scope: token.scope, // IDJAG-4.3.4-2
    resource: order.manner.tellsResource ? token.audience : undefined, // IDJAG-4.4.1-7
    ...part.answer,
  });
}
