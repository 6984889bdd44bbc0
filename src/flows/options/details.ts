/** Details (RFC 9396): what the decision leaves of them is in the row, the event and the answer. */
import { sparse } from "../../result.ts";
import { describeDetails } from "../audit-fields.ts";
import type { Part, TokenOption } from "./option.ts";

export const detailsOption: TokenOption = {
  grant: ({ settings, hash }, _order, { allowed: { details, lapsed } }) => ({
    row: sparse<NonNullable<Part["row"]>>({ details }),
    granted: sparse<NonNullable<Part["granted"]>>({
      authorization_details: details && describeDetails(hash, settings().policy.details, details),
    }),
    policy: sparse<NonNullable<Part["policy"]>>({ lapsed }),
    answer: sparse<NonNullable<Part["answer"]>>({ authorization_details: details }), // RFC9396-7-1, IDJAG-4.3.4-3
  }),
};
