/**
 * Ask your user: an agent that only lacks its user's consent gets a link with the refusal, at which exactly that user
 * can give exactly that consent (PAGE-D-23); the page behind it is asked.ts.
 */

import type { AskedUser } from "../../audit/event.ts";
import type { Order } from "../../flows/order/order.ts";
import {
  CANCELS_MAX,
  DEFERRALS_PER_QUESTION_MAX,
  PENDING_PER_ACTOR_AND_SUBJECT_MAX,
  PENDING_PER_ACTOR_MAX,
  PENDING_PER_SUBJECT_MAX,
  REFUSED_SECONDS,
  REQUEST_SECONDS,
} from "../../limits/people.ts";
import type { MissingConsent } from "../../policy/access.ts";
import { foreignKeys, userDigest } from "../../policy/endings.ts";
import type { PendingConsent } from "../../records.ts";
import { defined } from "../../result.ts";
import type { Json } from "../../spec/rfc8259.ts";
import { canonicalize } from "../../spec/rfc8785.ts";
import type { PeoplePorts } from "../ports.ts";

const CAPS = {
  perActor: PENDING_PER_ACTOR_MAX,
  perSubject: PENDING_PER_SUBJECT_MAX,
  perPair: PENDING_PER_ACTOR_AND_SUBJECT_MAX,
};

/** A question that others change at the same time is read anew so often. */
export const ATTEMPTS_MAX = 4;

export type AskPorts = Pick<PeoplePorts, "settings" | "hash" | "random" | "endings" | "pendingConsents">;

/**
 * The link for the agent, which is absent where too many are pending, and what the audit trail has of it. `count` is there
 * for one more request about an open question: it counts the request there, unless the question has changed.
 */
export type Link = { errorUri?: string; asked: AskedUser; count?: () => Promise<boolean> };

/** The order that lacks a consent or a job, and why the agent asks, in its own words. */
export type Asking = Pick<Order, "access" | "job"> & { reason?: string };

/** Why there is no question. */
type NotAsked = Extract<AskedUser, { refused: unknown }>;

/** A client that waits for the answer by a code: the id of its link, and when it ends. */
type Waiting = NonNullable<PendingConsent["codes"]>[number];

/** RFC6749-5.2-12, DTR-6.4-4: a URI has only characters that a URI may have: our issuer, and base64url. */
export const linkTo = ({ settings }: Pick<PeoplePorts, "settings">, id: string): string =>
  `${settings().issuer}/ask?r=${id}`;

/**
 * The same request of the same agent gets the same link while that lives, also after the user has refused, so that the
 * agent learns nothing of a refusal.
 */
export async function askUser(
  ports: AskPorts,
  asking: Asking,
  missing: MissingConsent,
  nowSeconds: number,
): Promise<Link> {
  const question = await openQuestion(ports, asking, missing, nowSeconds);
  if ("refused" in question) return { asked: question };
  const { id, isPoll, decided } = question;
  return defined<Link>({
    errorUri: linkTo(ports, id),
    asked: defined<AskedUser>({ pending: ports.hash.sha256(id), answered: decided ? true : undefined }),
    count: isPoll && isCounted(question) ? () => countPoll(ports, question, nowSeconds) : undefined,
  });
}

/** AUDIT-D-13: while there is no answer, and once the user has refused, of which the agent is not told. */
const isCounted = ({ decided, denied, closed }: PendingConsent): boolean =>
  !closed && (!decided || denied === true);

/** AUDIT-D-13: whether the poll is counted; where the question is closed or was allowed meanwhile, it is an event. */
export async function countPoll(
  { pendingConsents }: Pick<PeoplePorts, "pendingConsents">,
  pending: PendingConsent,
  nowSeconds: number,
): Promise<boolean> {
  let found: PendingConsent | undefined = pending;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    if (found === undefined || !isCounted(found)) return false;
    if (await pendingConsents.poll(found, nowSeconds)) return true;
    found = await pendingConsents.find(found.id, nowSeconds);
  }
  return false;
}

/** DTR-D-2: one question for all that ask the same, whether they ask again or wait. */
export async function openQuestion(
  { hash, random, endings, pendingConsents }: AskPorts,
  { access, job: { proposed } = {}, reason }: Asking,
  { target, scope, details }: MissingConsent,
  nowSeconds: number,
  waiting?: Waiting,
): Promise<(PendingConsent & { isPoll?: true }) | (NotAsked & { denied?: PendingConsent })> {
  const { subject, workload, clientId } = access;
  const actor = workload ?? clientId;
  const user = subject?.origin;
  const about = [user?.iss, user?.sub, actor, target.names[0], scope.toSorted()];
  // RAR-D-10: another object is another question.
  if (details !== undefined) about.push(canonicalize(details as unknown as Json));
  // JOB-D-6: what is given in a job counts there alone, and what is given for a job is that job.
  const job = proposed?.asked ?? access.job?.id;
  if (job !== undefined) about.push(`job ${job}`);
  if (access.job?.iss !== undefined) about.push(`of ${access.job.iss}`);
  const requested = new Set(access.details?.map(({ type }) => type));
  const fresh = defined<PendingConsent>({
    id: random.id(),
    version: 1,
    asked: hash.sha256(JSON.stringify(about)),
    actor,
    subject: userDigest(hash.sha256, user),
    // The user is asked for these scopes and objects, whatever the rule allows later.
    ask: defined<PendingConsent["ask"]>({
      ...access,
      scope,
      details: access.details && details?.filter(({ type }) => requested.has(type)),
      reason,
    }),
    job: proposed,
    startedAtSeconds: nowSeconds,
    renewals: 0,
    codes: waiting && [waiting],
    unlinked: waiting && true,
    polls: 0,
    pollsRecorded: 0,
    expiresAtSeconds: Math.max(nowSeconds + REQUEST_SECONDS, waiting?.endsAtSeconds ?? 0),
  });
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const found = await pendingConsents.open(fresh, { ...CAPS, nowSeconds });
    if (found === undefined) return { refused: "pending_consents_too_many" };
    if (found.id === fresh.id) return found;
    // What was asked before the user's tokens were ended has ended with them; this asks again, by the same link.
    const ended =
      user !== undefined && (await endings.isEnded(foreignKeys(hash.sha256, user, found.startedAtSeconds)));
    const next = join(found, fresh, ended, waiting);
    if (next === undefined) return { ...found, isPoll: true };
    if ("refused" in next) return found.denied ? { ...next, denied: found } : next;
    if (await pendingConsents.replace(next)) return next;
  }
  return { refused: "pending_consents_too_many" };
}

/** The question as one more request of the agent leaves it; undefined where that changes nothing. */
function join(
  found: PendingConsent,
  { ask, startedAtSeconds }: PendingConsent,
  ended: boolean,
  waiting: Waiting | undefined,
): PendingConsent | NotAsked | undefined {
  const { closed, unlinked, codes = [], cancelledAtSeconds = [], ...kept } = found;
  const again = ended || closed === true;
  const others = again ? [] : codes.filter(({ endsAtSeconds }) => endsAtSeconds > startedAtSeconds);
  if (waiting === undefined && !again && !unlinked) return undefined;
  if (waiting !== undefined) {
    // DTR-D-9: what the user has answered is not asked again for a client that waits, and it is told nothing more.
    if (found.decided) return { refused: "request_decided" };
    const lately = cancelledAtSeconds.filter((at) => at > startedAtSeconds - REFUSED_SECONDS);
    if (lately.length >= CANCELS_MAX) return { refused: "deferrals_cancelled" };
    if (others.length >= DEFERRALS_PER_QUESTION_MAX) return { refused: "deferrals_too_many" };
  }
  const begun = again ? { ...kept, ask, startedAtSeconds } : kept;
  return defined<PendingConsent>({
    ...begun,
    version: found.version + 1,
    codes: waiting === undefined ? others : [...others, waiting],
    unlinked: waiting && unlinked,
    cancelledAtSeconds,
    expiresAtSeconds: Math.max(found.expiresAtSeconds, waiting?.endsAtSeconds ?? 0),
  });
}
