/**
 * The poll of a client that waits for its user (DTR-6.5): the stored facts of its first request become an order, which is
 * decided and issued like any other.
 */
import type { Reason } from "../../audit/reasons.ts";
import type { Order } from "../../flows/order/order.ts";
import { callerOf } from "../../flows/order/read-order.ts";
import type { ReadGrant } from "../../flows/people.ts";
import type { Failure, RefusedRequest, Unrecorded } from "../../flows/refusal.ts";
import { spendProof } from "../../flows/spend-proof.ts";
import { type StandingPorts, standing } from "../../flows/standing.ts";
import { checkSubject } from "../../flows/still-covers.ts";
import { type Known, refuseRequest, type TokenRequest } from "../../flows/token-request.ts";
import type { RecordPorts } from "../../ports.ts";
import type { PendingConsent } from "../../records.ts";
import { defined, err, ok } from "../../result.ts";
import { parsePoll } from "../../spec/deferred-token-response.ts";
import type { PeoplePorts } from "../ports.ts";
import type { DeferralRecord } from "../records.ts";
import { countPoll, linkTo } from "./ask-user.ts";
import { endsBy, findDeferral, linkOf, threadOf } from "./deferrals.ts";

type PollPorts = StandingPorts &
  Omit<RecordPorts, "authFailures"> &
  Pick<PeoplePorts, "endings" | "shortLived" | "pendingConsents" | "polls">;

export async function readPoll(
  ports: PollPorts,
  request: TokenRequest,
): Promise<Awaited<ReturnType<ReadGrant>>> {
  const { client, form } = request;
  const parsed = parsePoll(form);
  if (!parsed.ok) {
    const { kind, ...parameter } = parsed.error;
    return refuseRequest(request, { kind: "request_malformed", reason: kind, ...parameter });
  }
  const link = linkOf(ports.hash, parsed.value);
  // DTR-D-10: a client that polls too often does not reach the store.
  if (ports.polls.isTooSoon(`${client.clientId} ${link}`, request.request.id))
    return err({ failure: { kind: "polled_too_soon", reason: "polled_too_soon" } });
  const detail = { deferral: threadOf(ports.hash, link) };
  const found = await findDeferral(ports, client, link);
  if (!found.ok) return refuseRequest(request, found.error, { detail });
  const deferral = found.value;
  // The question is read before the consents are, so that an answer that is seen here is on record there.
  const question = await ports.pendingConsents.find(deferral.question, ports.clock.nowSeconds());
  const order = resume(ports, request, link, deferral, question);
  const gone = await subjectGone(ports, deferral);
  if (gone === undefined) return ok(order);
  const refused = refuseRequest(
    request,
    { kind: "deferral_ended", reason: gone },
    { ...deferral.facts.parties, ...order.resumes?.known },
  );
  return err({ ...refused.error, ...order.resumes?.ends("refused") });
}

/** DTR-D-6, DTR-4.1-1: what the caller is counts as it is now, and what it asked for as it was. */
function resume(
  ports: PollPorts,
  request: TokenRequest,
  link: string,
  deferral: DeferralRecord,
  question: PendingConsent | undefined,
): Order {
  const { platform } = request.client;
  const { access, facts, endingKeys: keys, requested } = deferral;
  const known = defined<Known>({ requested, detail: { deferral: threadOf(ports.hash, link) } });
  return defined<Order>({
    ...facts,
    access: defined<Order["access"]>({ ...access, ...callerOf(request.client) }),
    ground: { ...facts.ground, root: { keys }, platforms: platform === undefined ? [] : [platform] },
    // DTR-11.7-1: where it is refused, what the first request could have does not hold any more.
    manner: { ...facts.manner, refusedAs: "deferral_ended" },
    resumes: {
      known,
      asked: { pending: ports.hash.sha256(deferral.question) },
      ends: (by) =>
        defined({
          rows: endsBy(by, link, deferral),
          question: by === "refused" ? told(question) : undefined,
        }),
      waits: () => waits(ports, request, link, question, known),
    },
  });
}

/** DTR-D-9: from then on the user takes their refusal back no more. */
const told = (question: PendingConsent | undefined): PendingConsent | undefined =>
  question?.denied && !question.told ? { ...question, version: question.version + 1, told: true } : undefined;

async function waits(
  ports: PollPorts,
  request: TokenRequest,
  link: string,
  question: PendingConsent | undefined,
  known: Known,
): Promise<RefusedRequest | Unrecorded | undefined> {
  if (question === undefined || question.decided || question.closed) return undefined;
  if (!question.codes?.some((one) => one.link === link)) return undefined;
  const spent = await spendProof(ports, request.client, request.request);
  if (!spent.ok) return spent.error;
  const interactionUri = linkTo(ports, link);
  const failure: Failure = { kind: "interaction_required", reason: "consent_pending", interactionUri };
  // DTR-D-10, AUDIT-D-13
  const isCounted = await countPoll(ports, question, ports.clock.nowSeconds());
  return isCounted ? { failure } : refuseRequest(request, failure, known).error;
}

/** DTR-11.7-1: why what the first request brought does not stand any more; endings are looked up when it is written. */
async function subjectGone(
  ports: PollPorts,
  { access: { subject }, facts: { ground, sub } }: DeferralRecord,
): Promise<Reason | undefined> {
  if (subject === undefined) return undefined;
  const [parent] = ground.ancestors;
  const settings = ports.settings();
  if (parent !== undefined) {
    const found = await standing(ports, parent, ports.clock.nowSeconds());
    return found.ok ? undefined : `subject_${found.error}`;
  }
  const known = checkSubject(settings, subject.origin, sub);
  if (!known.ok) return `subject_${known.error}`;
  const accepted: readonly string[] = settings.trustedIssuers.get(subject.issuer)?.acceptAs ?? [];
  return accepted.includes(subject.tokenType) ? undefined : "subject_issuer_not_accepted_as_type";
}
