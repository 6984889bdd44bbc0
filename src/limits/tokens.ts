/** Lifetimes and sizes of tokens, grants, assertions and proofs, and what an ending reaches. */
import { STORE_TIMEOUT_MS } from "./store.ts";

/** Lifetime of an access token, if its rule does not say. */
export const ACCESS_TOKEN_SECONDS = 300;
export const ACCESS_TOKEN_SECONDS_MAX = 3600;
/** A token that would expire sooner is not issued. */
export const TOKEN_SECONDS_MIN = 5;
/** Lifetime of an issued JWT authorization grant, if its rule does not say. */
export const GRANT_SECONDS = 60;
export const GRANT_SECONDS_MAX = 300;
/** Age and lifetime of a client assertion or of a grant that is redeemed. */
export const ASSERTION_SECONDS_MAX = 300;
/** The most that an operator may allow for a client assertion that is accepted once: some libraries make them so. */
export const CLIENT_ASSERTION_SECONDS_MAX = 3600;
/** Age of a DPoP proof without a nonce. */
export const PROOF_SECONDS_MAX = 60;
/** A new DPoP nonce is made this often, and one is accepted until the next but one is made. */
export const NONCE_SECONDS = 60;
/** Remaining lifetime of a JWT-SVID. */
export const SVID_SECONDS_MAX = 3600;
/** Clock difference that is tolerated between this server and others. */
export const SKEW_SECONDS = 30;
export const ISSUED_TOKEN_BYTES_MAX = 12 * 1024;
export const ACT_HOPS_MAX = 8;
export const ACT_BYTES_MAX = 8 * 1024;
/** Values of one claim that is carried over into a grant. */
export const CLAIM_VALUES_MAX = 64;
/** How far the cut-off of an ending reaches into the future: what is being written at the same time is ended too. */
export const ENDING_REACH_MS = STORE_TIMEOUT_MS;
/** How long the tokens are counted that an ending reaches, before the answer says that there may be more. */
export const ENDING_COUNT_MS = 3_000;
/** How long an ending is kept that also refuses foreign tokens issued before it. */
export const ENDING_KEPT_SECONDS = 400 * 24 * 3600;
/** Tokens on one page of those that an ending would end, by default and at most. */
export const ENDED_PAGE = 100;
export const ENDED_PAGE_MAX = 1_000;
