/** Input and output of the reader of token requests: parameters and evidence of the parties in, an order out. */

import type { AskedUser, AuditEvent, AuditedToken } from "../../audit/event.ts";
import type { TokenReason } from "../../audit/reasons.ts";
import type { Mode } from "../../modes.ts";
import type { AccessRequest, Allowed, Subject } from "../../policy/access.ts";
import type { EndingKey, Root } from "../../policy/endings.ts";
import type { Job, PresentedJob, ProposedJob } from "../../policy/jobs.ts";
import type { FamilyChange, Guard } from "../../records.ts";
import type { Awaitable, Result } from "../../result.ts";
import type { SignInFacts } from "../../spec/oidc-user.ts";
import type { RefreshEnds } from "../../spec/refresh-token-expiration.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import type { Chain, RequestedType } from "../../spec/rfc8693.ts";
import type { TransactionRequest } from "../../spec/transaction-tokens.ts";
import type { Authenticated } from "../authenticate-client.ts";
import type { Failure, FinalKind, RefusedRequest, Unrecorded } from "../refusal.ts";
import type { PlatformProof } from "../verifier.ts";

// --- what goes in -----------------------------------------------------------------------------------------------

/** The parameters that ask for something, as sent. */
export type Requested = {
  mode: Mode;
  /** How the request brings the token of a platform's workload, which is the subject. */
  sentAs?: "grant" | "exchange";
  audience: readonly string[];
  resource: readonly string[];
  scope?: string;
  /** The parameter `authorization_details`. */
  details?: string;
  requestedType?: RequestedType;
  /** What a transaction token is to say of its call; absent in a question, which tells no facts. */
  transaction?: TransactionRequest;
};

/** An authenticated client, or the one that a question names. */
export type RequestingClient = Pick<
  Authenticated,
  | "clientId"
  | "workload"
  | "registrationClass"
  | "scopes"
  | "detailTypes"
  | "defaultTarget"
  | "bindsBy"
  | "platform"
> &
  Pick<AccessRequest, "keys" | "forWorkload">;

/** What the audit trail says of the parties to a request. */
export type Parties = Pick<AuditEvent, "subject" | "actor" | "chain" | "may_act">;

/**
 * Why a token or its claims are not accepted; `parties` is there where the signature was good, so that the subject is
 * known.
 */
export type Refused = { reason: TokenReason; parties?: Parties; isOfEndedJob?: true };

/** The subject behind a subject token or a grant. */
export type ResolvedSubject = {
  /** The `sub` that we give the subject (IDC-2.4.2-3, IDJAG-4.1-1). */
  sub: string;
  subject: Subject;
  /** The `jti` of the tokens of ours behind it, nearest first; there is none behind a foreign token. */
  ancestors?: readonly string[];
  /** The root, by which an ending of it also ends what comes from it; absent in a question. */
  root?: Root;
  /** Claims of a foreign subject token, of which a partner may see some. */
  claims?: JsonObject;
  /** The APIs that a grant names. */
  resources?: readonly string[];
  /** The guard of the grant or code, which its redemption uses up. */
  spends?: Guard;
  /** The token of a platform, whose workload the subject is. */
  platform?: PlatformProof;
  /** The sign-in of a user who signed in here. */
  signIn?: SignInFacts;
  job?: PresentedJob;
  /** The same where it is a job of ours and came with the token, which has its keys: neither of them has ended. */
  jobOnRecord?: Job;
  /** Absent in a question, which has no token. */
  parties?: Parties;
};

/** The workload in an actor token. */
export type ResolvedActor = {
  sub: string;
  token?: AuditedToken;
  /** The token of a platform, where another one than this proved the caller. */
  platform?: PlatformProof;
  /** The `jti` of an actor token of ours. */
  jti?: string;
  job?: PresentedJob;
};

/** How the parties are found: by tokens, each verified only when it is its turn, or by the claims of a question. */
export type Evidence = {
  subject?: () => Awaitable<Result<ResolvedSubject, Refused>>;
  actor?: () => Awaitable<Result<ResolvedActor, Refused>>;
};

// --- what comes out ---------------------------------------------------------------------------------------------

/**
 * What becomes of a refresh family when its access token is issued. `generation` is that of the token that was
 * presented, or of the first one; `gives` is the refresh token of the answer.
 */
export type FamilyStep = {
  type: AuditEvent["type"];
  generation: number;
  family: FamilyChange;
  /** When the family ends after this step, as the settings have it now. */
  ends: RefreshEnds;
  gives?: string;
};

/** What a user gave by a click, as a code or a refresh token stands for it. */
type GrantOfUser = {
  id: string;
  /** The number of the refresh token that was presented. */
  generation?: number;
  /** The step of the family; undefined where what is allowed comes without a refresh token. */
  step(allowed: Allowed): FamilyStep | undefined;
  /** Called once a family that begins with this request is on record. */
  begun?(): Promise<void>;
};

/** A request that waited for its user, and that a poll goes on with: what of it is not in the order. */
type Resumed = {
  /** For the audit trail: the parameters of the first request, and the thread of its events. */
  known: Pick<AuditEvent, "requested" | "detail">;
  asked: AskedUser;
  /** The changes by which it ends, with a token or without. */
  ends(by: "granted" | "refused"): Pick<RefusedRequest, "rows" | "question">;
  /** The answer while the user has not decided; undefined where they have, or where nothing waits for them any more. */
  waits(): Promise<RefusedRequest | Unrecorded | undefined>;
};

/** The job of an order: what is presented and asked for, and once it is found, what ends it. */
export type JobOfOrder = {
  presented?: PresentedJob;
  /** The same, until the job is found: nothing keeps it, since only targets see what its salt makes. */
  onRecord?: Job;
  /** The job of an actor token of ours. */
  ofActor?: PresentedJob;
  /** The job that the client asks for, which its user has not approved. */
  proposed?: ProposedJob;
  /** What ends the job that the policy decides about; absent where a token of it is the root, which has these keys. */
  keys?: readonly EndingKey[];
  /** The caller is the agent that the job was made for, which knows its id. */
  isAgents?: boolean;
};

/** What is issued ends with each of these. */
type Ground = {
  ancestors: readonly string[];
  /** Absent if what is issued is its own root. */
  root?: Root;
  /** The `jti` of an actor token of ours. */
  actorJti?: string;
  /** The tokens of platforms that proved a party. */
  platforms: readonly PlatformProof[];
};

/** How the request brings its subject and names its target, where its answer differs by that. */
type Manner = {
  /** Whether a grant names APIs, so that the answer says which one the token is for. */
  tellsResource: boolean;
  /** Whether the target is named by the grant alone. */
  targetFromGrant: boolean;
  transaction?: TransactionRequest;
  sentAs?: NonNullable<Requested["sentAs"]>;
  /** How every refusal of it is told. */
  refusedAs?: FinalKind;
};

/** What a user gave by a click, as a code or a refresh token of the request says. */
type OfUser = {
  /** The `jti` of the token, where it is known beforehand. */
  jti?: string;
  grant: GrantOfUser;
  /** No other consent of the user counts. */
  consentId: string;
};

export type Order = {
  /** The access request that the policy decides, but for consents and time. */
  access: Omit<AccessRequest, "consents" | "nowSeconds">;
  /** The `sub` that the token will have: our name of the subject, or the client itself. */
  sub: string;
  /** The chain of the token to be issued, current actor first. */
  chain: Chain;
  ground: Ground;
  spends?: Guard;
  manner: Manner;
  job?: JobOfOrder;
  user?: OfUser;
  signIn?: SignInFacts;
  subjectClaims?: JsonObject;
  /** Present if the request waited for its user. */
  resumes?: Resumed;
  parties: Parties;
};

export type OrderRefused = { failure: Failure; parties: Parties };
