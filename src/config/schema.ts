/** The schema of the configuration file; each text is the error that an operator reads for an invalid value. */
import * as v from "valibot";
import { CHECKPOINT_EVENTS, CHECKPOINT_SECONDS, RETENTION_DAYS } from "../limits/audit.ts";
import { PROOFS_MS_PER_SECOND } from "../limits/connections.ts";
import { DRAIN_SECONDS_MAX } from "../limits/process.ts";
import { LEASE_SECONDS_MAX, STORE_CONNECTIONS_MAX, STORE_START_SECONDS } from "../limits/store.ts";
import { ASSERTION_SECONDS_MAX, CLIENT_ASSERTION_SECONDS_MAX, SKEW_SECONDS } from "../limits/tokens.ts";
import { Target } from "../policy/rules.ts";
import { foreignIssuer } from "../policy/targets.ts";
import { DRAFT as DOCUMENTS_DRAFT } from "../spec/cimd.ts";
import { DRAFT as ID_JAG_DRAFT } from "../spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../spec/identity-chaining.ts";
import { FORWARDED_FIELDS } from "../spec/rfc7239.ts";
import { ASSERTION_ALGORITHMS, PROOF_ALGORITHMS } from "../spec/rfc8725.ts";
import { DRAFT as SPIFFE_DRAFT } from "../spec/spiffe/client-auth.ts";
import { ClientFile, DocumentsFile, OriginFile, RegistrationFile } from "./client-schema.ts";
import { KeysFile } from "./keys-schema.ts";
import { SharingRule } from "./shared.ts";
import { AuthorizeFile, PagesFile, SignInFile } from "./sign-in-schema.ts";
import {
  env,
  file,
  oneForm,
  originUrl,
  pageOrigin,
  port,
  reach,
  remote,
  seconds,
  secret,
  text,
  workloadId,
  workloadPattern,
} from "./values.ts";

/** Our own issuer identifier: paths are appended to it (RFC6749-3.2-2), and assertions name it (B7523-4-4). */
const issuerUrl = v.pipe(
  foreignIssuer,
  v.check((url) => !url.endsWith("/"), "ends with a slash"),
);
/** Settings that are allowed in one profile only are checked by readBundleEndpoint. */
const bundleEndpoint = v.strictObject({
  ...remote.entries,
  profile: v.optional(v.picklist(["https_web", "https_spiffe"]), "https_web"),
  endpointSpiffeId: v.optional(workloadId),
  bootstrap: v.optional(file),
});
export type BundleEndpoint = v.InferOutput<typeof bundleEndpoint>;

const TrustDomainFile = v.strictObject({
  bundle: oneForm(
    [file, bundleEndpoint],
    'is neither { "file": … } nor { "url": …, "ca": { "file": … }, "privateNetworks": [ … ] }',
  ),
  admit: v.optional(
    v.union(
      [v.picklist(["all", "none"]), v.array(workloadPattern)],
      'is neither "all", "none" nor an array of SPIFFE IDs and prefixes',
    ),
    "all",
  ),
  requireClientId: v.optional(v.boolean(), false),
});

export const IssuerFile = v.strictObject({
  keys: oneForm(
    [file, remote, v.strictObject({ discover: v.literal(true), ...reach })],
    'is neither { "file": … }, { "url": … } nor { "discover": true }, the last two with optional "ca" and "privateNetworks"',
  ),
  audiences: v.optional(v.pipe(v.array(text), v.minLength(1))),
  /** The types of its subject tokens; empty for an issuer that only vouches for clients. */
  acceptAs: v.optional(v.array(v.picklist(["jwt", "id_token", "access_token"])), ["jwt"]),
  types: v.optional(v.pipe(v.array(v.nullable(text)), v.minLength(1)), [null, "JWT", "at+jwt"]),
  algorithms: v.optional(v.pipe(v.array(v.picklist(ASSERTION_ALGORITHMS)), v.minLength(1)), [
    ...ASSERTION_ALGORITHMS,
  ]),
  subjects: oneForm(
    [v.literal("keep"), v.strictObject({ prefix: text }), v.strictObject({ table: v.record(text, text) })],
    'is neither "keep", { "prefix": … } nor { "table": … }',
  ),
  /** For providers whose `sub` differs from client to client: the claim that names a user for all of them. */
  subjectClaim: v.optional(text, "sub"),
  scopes: v.optional(v.array(text), []),
  maxAgeSeconds: v.optional(seconds),
  /** Present: its tokens authenticate clients; `reusable` allows a token to be sent again until `maxAgeSeconds`. */
  vouches: v.optional(
    v.strictObject({
      maxAgeSeconds: v.optional(v.pipe(seconds, v.maxValue(24 * 3600)), ASSERTION_SECONDS_MAX),
      reusable: v.optional(v.boolean(), false),
    }),
  ),
  /** Whether its software statements are accepted at registration. */
  statements: v.optional(v.boolean(), false),
  /** Present: its JWT authorization grants of these kinds are redeemed. */
  grants: v.optional(
    v.strictObject({
      profiles: v.optional(v.pipe(v.array(v.picklist(["jwt", "id-jag"])), v.minLength(1)), ["jwt", "id-jag"]),
      scopes: v.optional(v.array(text), []),
      requireClientId: v.optional(v.boolean(), true),
    }),
  ),
  /** Treats the issuer as if it were not configured. */
  disabled: v.optional(v.boolean(), false),
  disabledSubjects: v.optional(v.array(text), []),
});

/** Issuers whose users manage their own consents with a token for the audience `{issuer}/consents`. */
const ConsentsFile = v.strictObject({
  issuers: v.optional(
    v.record(
      text,
      v.strictObject({
        /** The accepted values of `azp` or `client_id` in such a token. */
        clients: v.pipe(v.array(text), v.minLength(1)),
        types: v.optional(v.pipe(v.array(v.nullable(text)), v.minLength(1)), [null, "JWT", "at+jwt"]),
      }),
    ),
    {},
  ),
});

const listener = { host: text, port, tls: v.strictObject({ key: file, cert: file }) };
const rate = (fallback: number) => v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), fallback);

/** How long the start waits for the store. */
const startSeconds = v.optional(
  v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(3600)),
  STORE_START_SECONDS,
);

export const ConfigFile = v.strictObject({
  $schema: v.optional(v.string()),
  version: v.literal(1, "is not 1"),
  profile: v.optional(v.picklist(["production", "development"]), "production"),
  issuer: issuerUrl,
  /** Asks clients for certificates, unless `mtls` is configured. */
  listen: v.strictObject({
    ...listener,
    /** How long all listeners serve on after SIGTERM; by default as the profile says. */
    drainSeconds: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(DRAIN_SECONDS_MAX))),
    /** Whether other processes may listen at the same address and port, on all listeners but that for operations. */
    reusePort: v.optional(v.boolean(), false),
  }),
  mtls: v.optional(v.strictObject({ ...listener, origin: originUrl })),
  /** A listener for one TLS-terminating proxy, which authenticates with its own certificate. */
  proxy: v.optional(
    v.strictObject({
      ...listener,
      ca: file,
      name: text,
      /** The field in which the proxy tells the address of its client. */
      clientAddress: v.optional(v.picklist(FORWARDED_FIELDS)),
    }),
  ),
  /** Health and metrics, in plain HTTP. */
  operations: v.optional(v.strictObject({ host: v.optional(text, "127.0.0.1"), port })),
  store: oneForm(
    [
      v.strictObject({ sqlite: text, startSeconds }),
      v.strictObject({
        postgres: secret,
        /** Connections of this instance to the database, at most. */
        connections: v.optional(
          v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000)),
          STORE_CONNECTIONS_MAX,
        ),
        startSeconds,
      }),
    ],
    'is neither { "sqlite": … } nor { "postgres": … }',
  ),
  keys: KeysFile,
  audit: v.strictObject({
    /** Its value is checked by readAudit. */
    instance: v.union([text, env], 'is neither an instance name nor { "env": … }'),
    /** How long this instance has its name without renewing it, on PostgreSQL. */
    leaseSeconds: v.optional(v.pipe(seconds, v.maxValue(LEASE_SECONDS_MAX))),
    /** A checkpoint is signed after this many events, and after this many seconds if there are new events. */
    checkpoint: v.optional(
      v.strictObject({
        events: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), CHECKPOINT_EVENTS),
        seconds: v.optional(v.pipe(seconds, v.maxValue(24 * 3600)), CHECKPOINT_SECONDS),
      }),
      {},
    ),
    /** Where checkpoints are sent, besides the store. */
    witness: v.optional(
      oneForm(
        [v.literal("stdout"), file, v.strictObject({ ...remote.entries, authorization: v.optional(secret) })],
        'is neither "stdout", { "file": … } nor { "url": … }',
      ),
    ),
    retentionDays: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), RETENTION_DAYS),
  }),
  assertionAudience: v.optional(
    v.picklist(["issuer", "issuer-or-token-endpoint"]),
    "issuer-or-token-endpoint",
  ),
  clockSkewSeconds: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(60)), SKEW_SECONDS),
  /** The longest age and lifetime of a client assertion that has a `jti`, and so is accepted once. */
  clientAssertionSeconds: v.optional(
    v.pipe(seconds, v.minValue(ASSERTION_SECONDS_MAX), v.maxValue(CLIENT_ASSERTION_SECONDS_MAX)),
    ASSERTION_SECONDS_MAX,
  ),
  trustDomains: v.optional(v.record(text, TrustDomainFile), {}),
  trustedIssuers: v.optional(v.record(text, IssuerFile), {}),
  clients: v.optional(v.record(text, ClientFile), {}),
  registration: v.optional(RegistrationFile, {}),
  clientMetadataDocuments: v.optional(DocumentsFile),
  /** By origin: the private networks and the authority that URLs supplied by clients may use at this origin. */
  clientOrigins: v.optional(v.record(originUrl, OriginFile), {}),
  consents: v.optional(ConsentsFile, {}),
  dpop: v.optional(
    v.strictObject({
      /** Empty: DPoP is off. */
      algorithms: v.optional(v.array(v.picklist(ASSERTION_ALGORITHMS)), [...PROOF_ALGORITHMS]),
      /** Where a proof needs a nonce of this server. */
      nonces: v.optional(v.array(v.picklist(["token", "api"])), ["api"]),
    }),
    {},
  ),
  /** The origins of web pages whose scripts may be clients: which may read what /token, /register and /revoke answer. */
  cors: v.optional(v.strictObject({ origins: v.array(pageOrigin) }), { origins: [] }),
  signIn: v.optional(SignInFile),
  authorize: v.optional(AuthorizeFile, {}),
  pages: v.optional(PagesFile, {}),
  limits: v.optional(
    v.strictObject({
      failuresPerMinuteBySource: rate(60),
      failuresPerMinuteByClient: rate(20),
      /** CPU time for verifications that fail. */
      proofMillisecondsPerSecond: rate(PROOFS_MS_PER_SECOND),
      requestsPerSecondByClient: rate(500),
      pagesPerMinuteBySource: rate(600),
      registrationsPerHourBySource: rate(20),
      registrationRequestsPerMinuteByClient: rate(60),
      fetchesPerMinuteBySource: rate(30),
      fetchesPerMinuteByHost: rate(60),
    }),
    {},
  ),
  targets: v.optional(v.array(Target), []),
  policies: v.optional(v.array(SharingRule), []),
  /** Every draft in use, with the revision that this version follows. */
  drafts: v.optional(
    v.array(
      v.picklist(
        [SPIFFE_DRAFT, DOCUMENTS_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT],
        "is not a draft that this version follows",
      ),
    ),
    [],
  ),
});
export type ConfigFile = v.InferOutput<typeof ConfigFile>;
