/**
 * What users give and are asked for: a family of refresh tokens goes on with what is issued for it, and the poll of a client
 * that waits ends the wait, by whatever comes of it.
 */
import type { AuditEvent } from "../../audit/event.ts";
import { defined, sparse } from "../../result.ts";
import { lifetimesOf } from "../../spec/refresh-token-expiration.ts";
import { DEFERRAL_RACED, type Failure, REFRESH_RACED, raced } from "../refusal.ts";
import type { Part, TokenOption } from "./option.ts";

export const refreshOption: TokenOption = {
  known: ({ user }) =>
    user === undefined ? {} : { grant: describeGrant(user.grant.id, user.grant.generation) },
  grant({ settings }, { access, user }, { allowed }, nowSeconds) {
    const step = user?.grant.step(allowed);
    if (user === undefined || step === undefined) return {};
    // RTE-D-4: in each success of a code or a refresh token, with a new refresh token or without, and in no other answer.
    const until = [allowed.consent?.expiresAtSeconds, access.job?.bounds.notAfterSeconds];
    const lasts = settings().tellsRefreshEnds ? lifetimesOf(step.ends, until, nowSeconds) : undefined;
    return {
      entry: { family: step.family },
      event: { type: step.type, grant: describeGrant(user.grant.id, step.generation) },
      answer: defined<NonNullable<Part["answer"]>>({
        refresh_token: step.gives,
        refresh_token_timeout: lasts?.refresh_token_timeout,
        authorization_expires_in: lasts?.authorization_expires_in,
      }),
    };
  },
  issued: ({ user }, { refresh_token: token }) => (token === undefined ? undefined : user?.grant.begun?.()),
};

const describeGrant = (id: string, generation: number | undefined) =>
  sparse<NonNullable<AuditEvent["grant"]>>({ generation, id });

export const refreshLost = (): Failure => raced(REFRESH_RACED);

export const deferralOption: TokenOption = {
  known: ({ resumes }) => defined({ ...resumes?.known, policy: resumes && { asked: resumes.asked } }),
  grant: (_ports, { resumes }) => ({
    entry: defined<NonNullable<Part["entry"]>>({ ...resumes?.ends("granted") }),
    event: { type: "deferral.granted" }, // DTR-D-15
  }),
  refuse: ({ resumes }) => resumes?.ends("refused") ?? {},
};

/** Another poll of the same code was answered first. */
export const deferralLost = (): Failure => raced(DEFERRAL_RACED);
