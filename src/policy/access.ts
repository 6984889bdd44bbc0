/** The access request that the policy decides, and the decision: the types that decide.ts and judge.ts share. */
import type { NotAsked } from "../audit/event.ts";
import type { SignInFacts } from "../spec/oidc-user.ts";
import type { GrantProfile } from "../spec/rfc7523.ts";
import type { BoundTo, Confirmation } from "../spec/rfc7800.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import type { Chain, RequestedType } from "../spec/rfc8693.ts";
import type { Detail } from "../spec/rfc9396.ts";
import type { DomainRules } from "../spec/transaction-tokens.ts";
import type { ClaimsLack, SubjectClaims } from "./claims.ts";
import type { ConformFailure, FallenDetail } from "./details.ts";
import type { Caller, Rule, Target } from "./rules.ts";

// --- the request ------------------------------------------------------------------------------------------------

/** A subject with the issuer that first vouched for it; equal `sub` of two issuers are two subjects. */
export type Origin = { iss: string; sub: string };

export type Consent = {
  id: string;
  version: number;
  origin: Origin;
  actor: string;
  targets: readonly string[];
  scopes: readonly string[];
  /** What it is limited to; it sets no limit by objects of other types (RAR-D-2, RAR-D-10). */
  details?: readonly Detail[];
  expiresAtSeconds?: number;
  /** JOB-D-6: the job inside which alone it counts; of another server's, with its issuer. */
  jobId?: string;
  jobIssuer?: string;
};

/** JOB-D-2: what is absent is not limited by the job; it always ends. */
export type JobBounds = {
  notAfterSeconds: number;
  /** Names of targets. */
  targets?: readonly string[];
  scopes?: readonly string[];
  details?: readonly Detail[];
  /** The clients and workloads that may take part. */
  agents?: readonly string[];
  /** The number of tokens that are issued here. */
  maxTokens?: number;
  /** The number of hops in a chain. */
  maxDepth?: number;
};

/** The job of a request, by what is presented. */
export type JobInForce = {
  id: string;
  /** The server whose job it is; absent for a job of ours. */
  iss?: string;
  bounds: JobBounds;
  /** Of a job of ours: makes the ids that targets see in place of its own. */
  salt?: string;
};

/** What the verified subject token says, or the grant, the authorization code or the refresh token that is redeemed. */
export type Subject = {
  tokenType: "access_token" | "jwt" | "id_token" | "txn_token" | "grant" | "code" | "refresh_token";
  origin: Origin;
  audiences: readonly string[];
  scopes: readonly string[];
  /** Its `authorization_details`, which everything that comes of it keeps (RAR-D-6). */
  details?: readonly Detail[];
  expiresAtSeconds: number;
  chain: Chain;
  mayAct?: JsonObject;
  /** The issuer of the token itself. */
  issuer: string;
  /** TXN-D-10: how often this transaction token was replaced before. */
  replaced?: number;
  /** Absent if the token is not bound to a key. */
  boundTo?: BoundTo;
  /** The sign-in of a user who signed in here. */
  signIn?: SignInFacts;
  /** What its issuer says of it, where rules demand something of that; "assumed" for whatever they demand. */
  claims?: SubjectClaims | "assumed";
};

/** The keys of which the caller proved possession in this very request. */
export type ProvenKeys = {
  /** The thumbprint of the key of its DPoP proof. */
  jkt?: string;
  /** The thumbprint of the certificate in the handshake, and the end of its validity. */
  certificate?: { x5t: string; notAfterSeconds: number };
};

/** The caller (its client, and the SPIFFE ID that it proved or that the operator gave it), and what it wants. */
export type AccessRequest = Caller & {
  /** The scopes that the client is registered for. */
  clientScopes?: readonly string[];
  subject?: Subject;
  /** The target's name as requested, or the client's default. */
  target?: string;
  requestedType?: RequestedType;
  /** The APIs at a partner that an ID-JAG is to name. */
  resources?: readonly string[];
  scope?: readonly string[];
  /** JOB-D-8: the job of what is presented, or the one that the caller chose for it. */
  job?: JobInForce;
  /** The requested `authorization_details`. */
  details?: readonly Detail[];
  /** The types of them that the client is registered for; absent for all. */
  clientDetails?: readonly string[];
  /** Absent if the request proved none; "assumed" in a question, for every key that is demanded. */
  keys?: ProvenKeys | "assumed";
  /** What the client's metadata demand its tokens to be bound by. */
  bindsBy?: readonly ("certificate" | "dpop")[];
  /** Whether the client pushed its authorization request; absent for other requests. */
  pushed?: boolean;
  /** The client brings the grant of this workload, which is not its own. */
  forWorkload?: true;
  /** Nothing that is issued lasts longer, because of the token that proved the caller. */
  endsAtSeconds?: number;
  consents: readonly Consent[];
  nowSeconds: number;
};

// --- the decision -----------------------------------------------------------------------------------------------

export type Condition =
  | "actor"
  | "target"
  | "subject_issuer"
  | "subject"
  | ClaimsLack
  | "subject_token"
  | "subject_key"
  | "sign_in"
  | "pushed"
  | "job"
  | "consent"
  | "chain_depth"
  | "binding"
  | "binding_conflict"
  | "lifetime"
  | "scope"
  | "details_type"
  | "details";

/** A requested scope, and the side of the intersection that does not have it. */
export type Fallen = {
  scope: string;
  at: "subject_token" | "client" | "rule" | "target" | "job" | "consent";
};

export type Trace = readonly {
  rule: string;
  failed?: Condition;
  /** What of a refused request does not hold besides, so that the next attempt fails at nothing new. */
  also?: readonly Condition[];
  fallen?: readonly Fallen[];
  /** The objects of which nothing was left, each with the side that left nothing (RAR-D-13). */
  fallenDetails?: readonly FallenDetail[];
}[];

export type Product =
  | { kind: "access_token" }
  | { kind: "txn_token"; domain: DomainRules }
  | {
      kind: "grant";
      profile: GrantProfile;
      /** The caller's name at the partner; an ID-JAG always has it. */
      clientIdThere?: string;
      /** The APIs that an ID-JAG names; empty for other grants. */
      resources: readonly string[];
    };

/** The version of a consent that a decision rests on, and its end. */
export type ConsentUsed = Pick<Consent, "id" | "version" | "expiresAtSeconds">;

export type Allowed = {
  rule: Rule;
  target: Target;
  product: Product;
  /** The issued `aud`: the name that was asked for, byte for byte (PROD-4.1r5-1); of a grant, the partner's issuer. */
  audience: string;
  scope: readonly string[];
  /** Absent if neither request, subject token, rule nor consent has any. */
  details?: readonly Detail[];
  /** The types of the subject token's details that the rule lets lapse at this target. */
  lapsed?: readonly string[];
  expiresAtSeconds: number;
  consent?: ConsentUsed;
  /** What the token has to be bound by; "any" by either. */
  demand: Target["binding"];
  /** The key that the token is bound to. */
  confirmation?: Confirmation;
  trace: Trace;
};

/**
 * The consent that alone keeps a rule from allowing the request, where its user is asked for it, and the scopes that the
 * rule would allow under it.
 */
export type MissingConsent = {
  rule: Rule;
  target: Target;
  scope: readonly string[];
  details?: readonly Detail[];
};

export type Denied = {
  kind: "policy_denied" | "target_refused" | "scope_refused" | "details_refused" | "binding_refused";
  reason:
    | "may_act_names_another"
    | "actor_without_workload"
    | "actor_is_subject"
    | "not_meant_for_caller"
    | "target_missing"
    | "target_unknown"
    | "target_not_allowed"
    | "target_is_partner"
    | "token_type_not_for_target"
    | "resource_not_allowed"
    | "client_unknown_at_partner"
    | "workload_not_in_domain"
    | "transaction_of_another_domain"
    | "transaction_scope_missing"
    | "purpose_not_allowed"
    | "scope_ambiguous"
    | "scope_empty"
    | ConformFailure["kind"]
    | "details_type_not_registered"
    | "details_exceed_subject_token"
    | "details_empty"
    | "details_demanded"
    | "details_type_not_at_target"
    | "subject_token_expires_too_soon"
    | "subject_token_does_not_permit"
    | "subject_key_not_proven"
    | "binding_not_proven"
    | "binding_excluded"
    | "job_required"
    | "job_does_not_permit"
    | "consent_missing"
    | "sign_in_insufficient"
    | ClaimsLack
    | "request_not_pushed"
    | "chain_too_deep"
    | "no_rule"
    | "job_not_approved"
    | "subject_unknown_at_partner";
  trace: Trace;
  missing?: MissingConsent;
  /** A consent lacks, and why its user is not asked for it. */
  notAsked?: NotAsked;
};
