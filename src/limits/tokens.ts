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
/** TXN-D-5, TXN-13.1-1: lifetime of a transaction token, if its rule does not say: nothing tells one that is replayed. */
export const TRANSACTION_SECONDS = 60;
export const TRANSACTION_SECONDS_MAX = 300;
/** TXN-D-13: it is a header field at every hop. */
export const TRANSACTION_BYTES_MAX = 4 * 1024;
/** TXN-D-10: how often a rule may let one be replaced. */
export const REPLACEMENTS_MAX = 8;
/** TXN-D-8: each of the two JSON parameters of its request: bytes, members, levels, characters of a text. */
export const CONTEXT_BYTES_MAX = 2 * 1024;
export const CONTEXT_MEMBERS_MAX = 16;
export const CONTEXT_DEPTH_MAX = 2;
export const CONTEXT_CHARS = 128;
export const CONTEXT_CHARS_MAX = 512;
/** Age and lifetime of a client assertion or of a grant that is redeemed. */
export const ASSERTION_SECONDS_MAX = 300;
/**
 * The most that an operator may allow for the lifetime of a client assertion that is accepted once, because some
 * libraries make long ones.
 */
export const CLIENT_ASSERTION_SECONDS_MAX = 3600;
/** The most that an operator may allow for life and age of a token of a platform's workload. */
export const WORKLOAD_TOKEN_SECONDS_MAX = 24 * 3600;
/** How long an issued token may outlive the token of the platform by which its workload proved itself. */
export const WORKLOAD_OUTLIVED_SECONDS = 300;
/** Age of a DPoP proof without a nonce. */
export const PROOF_SECONDS_MAX = 60;
/** A new DPoP nonce is made this often; each is accepted until the second one after it is made. */
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
/**
 * How far the cut-off of an ending reaches into the future, so that it also ends what is being written at the same
 * time.
 */
export const ENDING_REACH_MS = STORE_TIMEOUT_MS;
/** How long the tokens that an ending reaches are counted before the answer says that there may be more. */
export const ENDING_COUNT_MS = 3_000;
/** How long an ending is kept that also refuses foreign tokens issued before it. */
export const ENDING_KEPT_SECONDS = 400 * 24 * 3600;
/** A subject that is disabled stays so until it is enabled again, in practice permanently. */
export const DISABLED_KEPT_SECONDS = 100 * 365 * 24 * 3600;
/** The tokens on one page of a preview of an ending, by default and at most. */
export const ENDED_PAGE = 100;
export const ENDED_PAGE_MAX = 1_000;
