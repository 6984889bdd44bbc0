/** A client that waits for its user: the poll that goes on with its first request ends the wait by whatever comes of it. */
import { defined } from "../../result.ts";
import { DEFERRAL_RACED, type Failure, raced } from "../refusal.ts";
import type { Part, TokenOption } from "./option.ts";

export const deferralOption: TokenOption = {
  concerns: (_settings, _request, { resumes }) => resumes !== undefined,
  known: ({ resumes }) => defined({ ...resumes?.known, policy: resumes && { asked: resumes.asked } }),
  grant: (_ports, { resumes }) => ({
    entry: defined<NonNullable<Part["entry"]>>({ ...resumes?.ends("granted") }),
    event: { type: "deferral.granted" }, // DTR-D-15
  }),
  refuse: ({ resumes }) => resumes?.ends("refused") ?? {},
};

/** Another poll of the same code was answered first. */
export const deferralLost = (): Failure => raced(DEFERRAL_RACED);
