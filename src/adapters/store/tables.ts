/** The tables of the store, each with its columns; the migrations in `sql` make them. A new column is one row here. */
import type { Consent } from "../../policy/access.ts";
import type { Ending, SubjectEmail } from "../../policy/endings.ts";
import type {
  CheckpointRow,
  Family,
  InitialToken,
  JobRecord,
  PendingConsent,
  Recheck,
  RegisteredClient,
  ShortLived,
  Signal,
  StandingConsent,
  StoredConsent,
  SubjectWord,
  TokenRecord,
} from "../../records.ts";
import type { SecretDigest } from "../../settings/settings.ts";
import {
  asEndingKeys,
  asFlag,
  asInteger,
  asJson,
  asJsonText,
  asKey,
  asRecordWithout,
  asText,
  asTexts,
  tableOf,
} from "./columns.ts";
import type { ArchivedPolicy, KeyRow, PolledRow, SecretClient, StoredEvent } from "./store.ts";
import type { Segment, StoredSegment, TreeRow } from "./trail.ts";

export const EVENT = tableOf<StoredEvent>()("event", {
  log: asText("log"),
  seq: asInteger("seq"),
  id: asText("id"),
  time_ms: asInteger("timeMs"),
  type: asText("type"),
  body: asText("body"),
  prev: asText("prev"),
  hash: asText("hash"),
});

export const SEGMENT = tableOf<Segment>()("event_segment", {
  log: asText("log"),
  from_seq: asInteger("fromSeq"),
  to_seq: asInteger("toSeq"),
  from_ms: asInteger("fromMs"),
  to_ms: asInteger("toMs"),
});

export const STORED_SEGMENT = tableOf<StoredSegment>()("event_segment", {
  id: asInteger("id"),
  ...SEGMENT.columns,
});

export const CHECKPOINT = tableOf<CheckpointRow>()("checkpoint", {
  log: asText("log"),
  tree_size: asInteger("treeSize"),
  time_ms: asInteger("timeMs"),
  jws: asText("jws"),
});

export const TREE_HASH = tableOf<TreeRow>()("tree_hash", {
  log: asText("log"),
  level: asInteger("level"),
  number: asInteger("number"),
  hashes: asText("hashes"),
});

export const TOKEN = tableOf<TokenRecord>()("token", {
  jti: asText("jti"),
  client_id: asText("clientId"),
  workload: asText("workload?"),
  subject: asText("subject"),
  origin_iss: asText("origin.iss"),
  origin_sub: asText("origin.sub"),
  audience: asText("audience"),
  scope: asText("scope"),
  details: asJsonText("details?"),
  chain: asJson("chain"),
  may_act: asJson("mayAct?"),
  ancestors: asTexts("ancestors"),
  rule_id: asText("ruleId"),
  consent_id: asText("consentId?"),
  job_id: asText("jobId?"),
  job_iss: asText("jobIssuer?"),
  job_ends_at: asInteger("jobEndsAtSeconds?"),
  claims: asJsonText("claims?"),
  confirmation: asJsonText("confirmation?"),
  issued_at: asInteger("issuedAtSeconds"),
  expires_at: asInteger("expiresAtSeconds"),
  /** It is null in rows that the first versions wrote. */
  ending_keys: asEndingKeys("endingKeys"),
});

/** `eventId` and `reason` are those of the event that ended. */
export const ENDING = tableOf<Ending & { eventId: string; reason?: string }>()("ending", {
  key: asKey("key"),
  cut_off: asInteger("cutOffMs"),
  event_id: asText("eventId"),
  at_ms: asInteger("atMs"),
  expires_at: asInteger("expiresAtSeconds"),
  reason: asText("reason?"),
});

export const SPENT_JTI = tableOf<{
  issuer: string;
  jti: string;
  expiresAtSeconds: number;
  eventId: string;
}>()("spent_jti", {
  issuer: asText("issuer"),
  jti: asText("jti"),
  expires_at: asInteger("expiresAtSeconds"),
  event_id: asText("eventId"),
});

export const CONSENT = tableOf<Consent>()("consent", {
  id: asText("id"),
  version: asInteger("version"),
  origin_iss: asText("origin.iss"),
  origin_sub: asText("origin.sub"),
  actor: asText("actor"),
  targets: asTexts("targets"),
  scopes: asTexts("scopes"),
  details: asJsonText("details?"),
  expires_at: asInteger("expiresAtSeconds?"),
  job_id: asText("jobId?"),
  job_iss: asText("jobIssuer?"),
});

export const STORED_CONSENT = tableOf<StoredConsent>()("consent", {
  ...CONSENT.columns,
  withdrawn_at: asInteger("withdrawnAtSeconds?"),
});

export const STANDING_CONSENT = tableOf<StandingConsent>()("consent", {
  ...CONSENT.columns,
  given_at: asInteger("givenAtSeconds"),
});

export const SIGNING_KEY = tableOf<KeyRow>()("signing_key", {
  kid: asText("kid"),
  alg: asText("alg"),
  purpose: asText("purpose"),
  state: asText("state"),
  public_jwk: asText("publicJwk"),
  private_jwe: asText("privateJwe"),
  created_at: asInteger("createdAtSeconds"),
  since: asInteger("sinceSeconds?"),
  replace_at: asInteger("replaceAtSeconds?"),
  used_at: asInteger("usedAtSeconds?"),
});

export const POLLED = tableOf<PolledRow>()("kept_document", {
  kind: asText("kind"),
  name: asText("name"),
  location: asText("location"),
  body: asText("body"),
  sequence: asInteger("sequence?"),
  loaded_at: asInteger("loadedAtSeconds"),
});

export const POLICY = tableOf<ArchivedPolicy>()("policy_archive", {
  digest: asText("digest"),
  body: asText("body"),
  used_at: asInteger("usedAtSeconds"),
});

/**
 * A client that the operator created, or one that registered, which has the members below. Method and grant types
 * repeat its metadata, so that clients can be listed without parsing it. Of a removed one only the class is left.
 */
export const CLIENT = tableOf<
  Pick<SecretClient, "clientId" | "grantTypes" | "workload" | "defaultTarget"> & {
    source: "operator" | "registration";
    version: number;
    method: string;
    createdAtSeconds: number;
    disabledAtSeconds?: number;
  } & Partial<Pick<RegisteredClient, "metadata" | "registrationClass" | "ceiling" | "tokenGeneration">>
>()("client", {
  client_id: asText("clientId"),
  source: asText("source"),
  version: asInteger("version"),
  method: asText("method"),
  grant_types: asTexts("grantTypes"),
  workload: asText("workload?"),
  default_target: asText("defaultTarget?"),
  created_at: asInteger("createdAtSeconds"),
  disabled_at: asInteger("disabledAtSeconds?"),
  metadata: asJson("metadata?"),
  registration_class: asText("registrationClass?"),
  ceiling: asJson("ceiling?"),
  token_generation: asInteger("tokenGeneration?"),
});

export const CLIENT_SECRET = tableOf<SecretDigest & { createdAtSeconds: number }>()("client_secret", {
  digest: asText("digest"),
  created_at: asInteger("createdAtSeconds"),
  expires_at: asInteger("expiresAtSeconds?"),
});

export const INITIAL_TOKEN = tableOf<InitialToken>()("initial_token", {
  id: asText("id"),
  digest: asText("digest"),
  registration_class: asText("registrationClass"),
  ceiling: asJson("ceiling"),
  uses: asInteger("uses"),
  uses_max: asInteger("usesMax"),
  created_at: asInteger("createdAtSeconds"),
  expires_at: asInteger("expiresAtSeconds"),
  revoked_at: asInteger("revokedAtSeconds?"),
});

/** The column `browser` has the holder; it was added when browsers were the only holders. */
export const SHORT_LIVED = tableOf<ShortLived>()("short_lived", {
  kind: asText("kind"),
  key: asText("key"),
  version: asInteger("version"),
  browser: asText("holder?"),
  job_id: asText("jobId?"),
  body: asJsonText("body"),
  expires_at: asInteger("expiresAtSeconds"),
});

export const PENDING_CONSENT = tableOf<PendingConsent>()("pending_consent", {
  body: asRecordWithout(
    "asked",
    "id",
    "version",
    "actor",
    "subject",
    "polls",
    "polledAtSeconds",
    "pollsRecorded",
    "decided",
    "expiresAtSeconds",
  ),
  asked: asText("asked"),
  id: asText("id"),
  version: asInteger("version"),
  actor: asText("actor"),
  subject: asText("subject"),
  polls: asInteger("polls"),
  polled_at: asInteger("polledAtSeconds?"),
  polls_recorded: asInteger("pollsRecorded"),
  decided: asFlag("decided?"),
  expires_at: asInteger("expiresAtSeconds"),
});

/** What the body repeats of the columns is as the family began: the columns go before it. */
export const FAMILY = tableOf<Family>()("refresh_family", {
  body: asRecordWithout("endingKeys"),
  id: asText("id"),
  client_id: asText("clientId"),
  origin_iss: asText("origin.iss"),
  origin_sub: asText("origin.sub"),
  generation: asInteger("generation"),
  used_at: asInteger("usedAtSeconds"),
  idle_ends_at: asInteger("idleEndsAtSeconds?"),
  ends_at: asInteger("endsAtSeconds"),
  job_id: asText("jobId?"),
  ending_keys: asEndingKeys("endingKeys"),
});

/** Nothing changes but `issued`, which is null where the number of tokens has no bound (JOB-D-11). */
export const JOB = tableOf<JobRecord>()("job", {
  body: asRecordWithout("endingKeys", "issued"),
  id: asText("id"),
  origin_iss: asText("origin.iss"),
  origin_sub: asText("origin.sub"),
  client_id: asText("clientId"),
  actor: asText("actor"),
  asked: asText("asked?"),
  created_at: asInteger("createdAtSeconds"),
  not_after: asInteger("bounds.notAfterSeconds"),
  issued: asInteger("issued?"),
  ending_keys: asEndingKeys("endingKeys"),
});

export const RECHECK = tableOf<Recheck>()("recheck", {
  origin_iss: asText("origin.iss"),
  origin_sub: asText("origin.sub"),
  version: asInteger("version"),
  provider: asText("provider"),
  confirmed_at: asInteger("confirmedAtSeconds"),
  asked_at: asInteger("askedAtSeconds"),
  sealed: asText("sealed?"),
  expires_at: asInteger("expiresAtSeconds"),
});

export const SUBJECT_EMAIL = tableOf<SubjectEmail>()("subject_email", {
  origin_iss: asText("origin.iss"),
  origin_sub: asText("origin.sub"),
  email: asKey("email"),
  issued_at: asInteger("issuedAtSeconds"),
  expires_at: asInteger("expiresAtSeconds"),
});

export const SUBJECT_CLAIMS = tableOf<SubjectWord>()("subject_claims", {
  origin_iss: asText("origin.iss"),
  origin_sub: asText("origin.sub"),
  true_at: asInteger("atSeconds"),
  stale: asFlag("stale?"),
  said: asJsonText("values"),
  expires_at: asInteger("expiresAtSeconds"),
});

export const SIGNAL = tableOf<Signal>()("signal", {
  stream: asText("stream"),
  jti: asText("jti"),
  body: asText("body"),
  event_id: asText("eventId"),
  at_ms: asInteger("atMs"),
  expires_at: asInteger("expiresAtSeconds"),
});

export const FAMILY_TOKEN = tableOf<{ digest: string; familyId: string; generation: number }>()(
  "refresh_token",
  {
    digest: asText("digest"),
    family_id: asText("familyId"),
    generation: asInteger("generation"),
  },
);
