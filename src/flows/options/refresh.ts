/** What a user gave by a click, as a code or a refresh token stands for it: its family goes on with what is issued. */
import type { AuditEvent } from "../../audit/event.ts";
import { defined, sparse } from "../../result.ts";
import { lifetimesOf } from "../../spec/refresh-token-expiration.ts";
import { type Failure, REFRESH_RACED, raced } from "../refusal.ts";
import type { Part, TokenOption } from "./option.ts";

export const refreshOption: TokenOption = {
  concerns: (_settings, _request, { user }) => user !== undefined,
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
