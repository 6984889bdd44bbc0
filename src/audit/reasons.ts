/**
 * The reasons of audit events: our own design (clause AUDIT-D-2), with a sentence of each for the auditor.
 * Covers every value that `reason` of an event may have; `npm run clauses -- --reasons` prints them.
 */
import {
  CERTIFICATE_REASONS,
  DOCUMENT_REASONS,
  FETCH_REASONS,
  PROOF_REASONS,
  prefixed,
  TOKEN_REASONS,
  URL_REASONS,
} from "./reasons-of-proofs.ts";
import {
  CLIENT_REASONS,
  MANAGEMENT_REASONS,
  PEOPLE_REASONS,
  POLICY_REASONS,
  REQUEST_REASONS,
  SERVER_REASONS,
} from "./reasons-of-requests.ts";

export const REASONS = {
  ...URL_REASONS,
  ...prefixed("document", "client metadata document", DOCUMENT_REASONS),
  ...prefixed("key_set", "key set of the client", FETCH_REASONS),
  ...TOKEN_REASONS,
  ...prefixed("subject", "subject token", TOKEN_REASONS),
  ...prefixed("actor", "actor token", TOKEN_REASONS),
  ...prefixed("proof", "DPoP proof", PROOF_REASONS),
  ...CERTIFICATE_REASONS,
  ...MANAGEMENT_REASONS,
  ...CLIENT_REASONS,
  ...REQUEST_REASONS,
  ...POLICY_REASONS,
  ...PEOPLE_REASONS,
  ...SERVER_REASONS,
};

export type TokenReason = keyof typeof TOKEN_REASONS;
export type ProofReason = keyof typeof PROOF_REASONS;
export type Reason = keyof typeof REASONS;
