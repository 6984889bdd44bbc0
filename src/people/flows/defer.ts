/** Lets a client wait for its user (DTR-6.4): a code with which it polls, and a link of its own to the question. */
import type { AskedUser } from "../../audit/event.ts";
import { describeRequest, reasonIn } from "../../flows/audit-fields.ts";
import { keysOfOrder } from "../../flows/issued-entry.ts";
import type { Order } from "../../flows/order/order.ts";
import type { Failure } from "../../flows/refusal.ts";
import type { TokenRequest } from "../../flows/token-request.ts";
import { DEFERRAL_KEPT_SECONDS, DEFERRAL_SECONDS_MIN } from "../../limits/people.ts";
import type { JobInForce, MissingConsent } from "../../policy/access.ts";
import type { EndingKey } from "../../policy/endings.ts";
import type { Target } from "../../policy/rules.ts";
import type { RowChange } from "../../records.ts";
import { defined } from "../../result.ts";
import { buildDeferralCode } from "../../spec/deferred-token-response.ts";
import { transcribe } from "../../spec/identity-chaining.ts";
import type { DeferralRecord, PeopleRow } from "../records.ts";
import { type Asking, type AskPorts, countPoll, type Link, linkTo, openQuestion } from "./ask-user.ts";
import { holderOfCode, linkOf, threadOf } from "./deferrals.ts";

/** A client that waits: what it is told, and what is written with it if no ending reaches the keys. */
type Deferral = {
  told: Required<Pick<Failure, "interactionUri" | "deferral">>;
  rows: readonly RowChange[];
  endingKeys: readonly EndingKey[];
  /** The thread of its events. */
  thread: string;
};

export async function defer(
  ports: AskPorts,
  { client, form }: TokenRequest,
  order: Order,
  missing: MissingConsent,
  nowSeconds: number,
): Promise<{ asked: AskedUser; deferral?: Deferral } & Pick<Link, "count">> {
  const { settings, hash, random } = ports;
  const { seconds = 0 } = settings().deferral ?? {};
  const { access } = order;
  // DTR-D-5: no authority lasts longer because a client waits.
  const endsAtSeconds = Math.min(nowSeconds + seconds, access.subject?.expiresAtSeconds ?? 0);
  if (endsAtSeconds - nowSeconds < DEFERRAL_SECONDS_MIN) return { asked: { refused: "deferral_too_short" } };
  const code = buildDeferralCode(random.secret());
  const link = linkOf(hash, code);
  const asking = defined<Asking>({ access, job: order.job, reason: reasonIn(form) });
  const question = await openQuestion(ports, asking, missing, nowSeconds, { link, endsAtSeconds });
  // DTR-D-11: where there are too many, nothing of others gives way.
  if ("refused" in question) {
    const { denied, ...asked } = question;
    return defined({ asked, count: denied && (() => countPoll(ports, denied, nowSeconds)) });
  }
  const body: DeferralRecord = {
    ...holderOfCode(client, endsAtSeconds),
    ...factsOf(order, missing.target),
    question: question.id,
    requested: describeRequest(form),
    endingKeys: keysOfOrder(ports, order, missing.rule, nowSeconds, link),
  };
  const expiresAtSeconds = endsAtSeconds + DEFERRAL_KEPT_SECONDS;
  const add = defined<PeopleRow<"deferral">>({
    kind: "deferral",
    key: link,
    version: 1,
    // The job of another server is not among ours.
    jobId: access.job?.iss === undefined ? access.job?.id : undefined,
    body,
    expiresAtSeconds,
  });
  return {
    asked: { pending: hash.sha256(question.id) },
    deferral: {
      told: {
        interactionUri: linkTo(ports, link),
        deferral: { code, seconds: endsAtSeconds - nowSeconds },
      },
      rows: [{ add }],
      endingKeys: body.endingKeys,
      thread: threadOf(hash, link),
    },
  };
}

/**
 * DTR-D-1, DTR-12.2-1: the facts that the first request proved, without its tokens: what the caller is and which keys it
 * holds it proves anew at each poll.
 */
function factsOf(order: Order, { partner }: Target): Pick<DeferralRecord, "access" | "facts"> {
  const { access, ground, spends: _s, user: _u, resumes: _, ...facts } = order;
  const { root: _r, platforms: _p, ...kept } = ground;
  const { keys: _keys, job, ...asked } = access;
  // Of the claims of a foreign token, a partner may see these.
  const subjectClaims = partner && transcribe(facts.subjectClaims ?? {}, partner.claims);
  return {
    // A poll finds the job anew by its id, and only what is built for a target needs its salt.
    access: defined<DeferralRecord["access"]>({ ...asked, job: job && unsalted(job) }),
    facts: defined<DeferralRecord["facts"]>({ ...facts, ground: kept, subjectClaims }),
  };
}

const unsalted = ({ id, iss, bounds }: JobInForce): DeferralRecord["access"]["job"] =>
  defined<Omit<JobInForce, "salt">>({ id, iss, bounds });
