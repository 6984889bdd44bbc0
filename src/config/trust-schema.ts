/** The schema of what is trusted: `trustDomains`, `trustedIssuers` and `consents`. */
import * as v from "valibot";
import { WORKLOAD_NAME_CLAIMS_MAX } from "../limits/input.ts";
import { ASSERTION_SECONDS_MAX, WORKLOAD_TOKEN_SECONDS_MAX } from "../limits/tokens.ts";
import { flag, list, maybe, setting, whole } from "../setting.ts";
import { ASSERTION_ALGORITHMS } from "../spec/rfc8725.ts";
import { isPointer, WORKLOAD_USES } from "../spec/workload-grant.ts";
import {
  file,
  oneForm,
  reach,
  remote,
  seconds,
  secret,
  text,
  workloadId,
  workloadPattern,
} from "./values.ts";

/** Settings that are allowed in one profile only are checked by readBundleEndpoint. */
const bundleEndpoint = v.strictObject({
  ...remote.entries,
  profile: setting(
    v.optional(v.picklist(["https_web", "https_spiffe"]), "https_web"),
    "How the bundle endpoint authenticates: https_web (the default), by a certificate of the Web PKI or `ca`, or https_spiffe, by an SVID.",
  ),
  endpointSpiffeId: maybe(workloadId, "https_spiffe only: the SPIFFE ID of the bundle endpoint."),
  bootstrap: maybe(file, "https_spiffe only: a bundle with which the first fetch is verified."),
});
export type BundleEndpoint = v.InferOutput<typeof bundleEndpoint>;

export const TrustDomainFile = v.strictObject({
  bundle: setting(
    oneForm(
      [file, bundleEndpoint],
      'is neither { "file": … } nor { "url": …, "ca": { "file": … }, "privateNetworks": [ … ] }',
    ),
    'The trust bundle: { "file": … }, { "url": … }, or the same with "profile": "https_spiffe" and its members.',
  ),
  admit: setting(
    v.optional(
      v.union(
        [v.picklist(["all", "none"]), v.array(workloadPattern)],
        'is neither "all", "none" nor an array of SPIFFE IDs and prefixes',
      ),
      "all",
    ),
    'The workloads that are clients without an entry in `clients`: "all" (the default), "none", or SPIFFE IDs and prefixes that end in /*.',
  ),
  requireClientId: flag("Whether client_id is required beside a JWT-SVID"),
  jwtIssuer: maybe(
    text,
    "The `iss` of its JWT-SVIDs, as SPIRE's jwt_issuer; by it, one that a client sends as a plain client assertion (jwt-bearer) is told from others. Without it, only one without `iss` is.",
  ),
});

const authorization = maybe(
  file,
  "A bearer token by which this server may read them, as a cluster demands; the file is read at each fetch. It is sent to the origin of `url`, or of the issuer with `discover`, and to no other.",
);
const remoteKeys = v.strictObject({ ...remote.entries, authorization });
const discovery = v.strictObject({
  discover: setting(v.literal(true), "Reads the URL of the keys from the issuer's own metadata."),
  ...reach,
  authorization,
});
const prefixed = v.strictObject({ prefix: setting(text, "A text put before each `sub`.") });
const tabled = v.strictObject({
  table: setting(
    v.record(text, text),
    "The name here for each `sub`; a subject that is not in it is refused.",
  ),
});
const types = setting(
  v.optional(v.pipe(v.array(v.nullable(text)), v.minLength(1)), [null, "JWT", "at+jwt"]),
  "The accepted `typ` headers; null stands for a token without one.",
);

const VouchesFile = v.strictObject({
  maxAgeSeconds: setting(
    v.optional(whole(1, 24 * 3600), ASSERTION_SECONDS_MAX),
    "The longest age of such a token, in seconds; 300 by default.",
  ),
  reusable: flag("Whether such a token may be sent again until then"),
});

const GrantsFile = v.strictObject({
  profiles: setting(
    v.optional(v.pipe(v.array(v.picklist(["jwt", "id-jag"])), v.minLength(1)), ["jwt", "id-jag"]),
    "The kinds of grants: jwt, id-jag; both by default.",
  ),
  scopes: list(text, "What a grant without `scope` permits; nothing by default."),
  requireClientId: setting(
    v.optional(v.boolean(), true),
    "Whether a plain grant must name its client; true by default.",
  ),
});

const texts = v.pipe(v.array(text), v.minLength(1));
const workloadSeconds = v.optional(whole(1, WORKLOAD_TOKEN_SECONDS_MAX), ASSERTION_SECONDS_MAX);

/** PLAT-D-1: one registration, which says which tokens of the issuer are those of workloads. */
const WorkloadsFile = v.strictObject({
  uses: maybe(
    v.pipe(v.array(v.picklist(WORKLOAD_USES)), v.minLength(1)),
    "What its tokens are accepted as: grant, client, actor (these three by default; with `clients`, grant alone), and subject, which has to be named.",
  ),
  tenancy: setting(
    v.picklist(["dedicated", "shared"]),
    "Whether all that the issuer signs is of your own workloads (dedicated), or anyone can get a token of it (shared).",
  ),
  subjects: setting(
    texts,
    "The `sub` of its workloads: exact, or a prefix that ends in a star after a slash or a colon; * alone for a dedicated issuer.",
  ),
  claims: setting(
    v.optional(v.record(text, v.pipe(v.array(v.union([text, v.boolean()])), v.minLength(1))), {}),
    "By JSON pointer, the exact values that a claim may have; each of them has to match. A token with `aud_tenant` is taken only where this names it.",
  ),
  name: maybe(
    v.pipe(texts, v.maxLength(WORKLOAD_NAME_CLAIMS_MAX)),
    "The claims that name its workloads here in place of `sub`, by JSON pointer, in this order; up to 4, each a text. To change them is to make another set of agents.",
  ),
  audiences: maybe(
    texts,
    "The audiences of which its tokens must have exactly one; by default the names of this server.",
  ),
  types: setting(
    v.optional(v.pipe(v.array(v.nullable(text)), v.minLength(1)), [null, "JWT"]),
    "The accepted `typ` headers; null stands for a token without one.",
  ),
  maxLifeSeconds: setting(workloadSeconds, "The longest life of such a token, in seconds; 300 by default."),
  maxAgeSeconds: setting(workloadSeconds, "The longest age of such a token, in seconds; 300 by default."),
  reusable: flag("Whether such a token may be sent again until then"),
  clients: maybe(texts, "The clients that may bring its grants, which then have to authenticate."),
  svid: flag("Whether `sub` may be a SPIFFE ID of a trust domain that is not in `trustDomains`"),
});
export type WorkloadsFile = v.InferOutput<typeof WorkloadsFile>;

const SignalSourceFile = v.strictObject({
  name: setting(
    v.pipe(
      v.string(),
      v.regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "is not a name: 1 to 63 characters of a-z, 0-9 and -"),
    ),
    "The last segment of the URL to which it pushes: {issuer}/signals/NAME.",
  ),
  audiences: maybe(
    v.pipe(v.array(text), v.minLength(1)),
    "The audiences of which its events must have one; by default the issuer of this server and that URL.",
  ),
  authorization: maybe(secret, "The value of the Authorization header field that each push must have."),
  issuer: maybe(
    text,
    "The `iss` of its events and of the subjects in them, where it is not that of its tokens: Google ends it with a slash.",
  ),
  criticalSubjectMembers: list(
    text,
    "The `critical_subject_members` of its metadata: an event whose subject has one of them, beside user and session, ends nothing.",
  ),
  email: maybe(
    v.pipe(v.string(), v.check(isPointer, "is not a JSON pointer, such as /email")),
    "The claim of its tokens with the e-mail address of the user, by JSON pointer, such as /email, so that its events may name users by it; a digest of it is kept as long as the user has something here. Without it such events are refused.",
  ),
  unverifiedEmail: flag("Whether an address counts also in tokens whose `email_verified` is not true"),
});

export const IssuerFile = v.strictObject({
  keys: setting(
    oneForm(
      [file, remoteKeys, discovery],
      'is neither { "file": … }, { "url": … } nor { "discover": true }, the last two with optional "ca", "privateNetworks" and "authorization"',
    ),
    'Its public keys: { "discover": true } by its metadata, { "url": … } of a JWK Set, or { "file": … } with one, which is read again every 30 seconds.',
  ),
  audiences: maybe(
    v.pipe(v.array(text), v.minLength(1)),
    "The audiences of which its tokens must have one; by default the issuer of this server.",
  ),
  acceptAs: maybe(
    v.array(v.picklist(["jwt", "id_token", "access_token"])),
    "The types under which its tokens are accepted as subject tokens: jwt (the default, but for an issuer with `workloads`), id_token, access_token; [] for none.",
  ),
  types,
  algorithms: setting(
    v.optional(v.pipe(v.array(v.picklist(ASSERTION_ALGORITHMS)), v.minLength(1)), [...ASSERTION_ALGORITHMS]),
    "The accepted signature algorithms; by default all that this server verifies.",
  ),
  subjects: maybe(
    oneForm([v.literal("keep"), prefixed, tabled], 'is neither "keep", { "prefix": … } nor { "table": … }'),
    'What its subjects are called here: "keep" (for one issuer only), { "prefix": … } or { "table": … }; demanded, unless it is trusted for `workloads` alone.',
  ),
  /** For providers whose `sub` differs from client to client. */
  subjectClaim: setting(
    v.optional(text, "sub"),
    "The claim that names a user, for all clients alike, in its tokens and at sign-in; `sub` by default. For Entra, `oid`: its `sub` is another one for each client.",
  ),
  scopes: list(text, "What a token of it without `scope`, such as an ID token, permits; nothing by default."),
  details: maybe(
    v.array(text),
    "The types of `authorization_details` that are taken from its tokens and grants; one with another type is refused.",
  ),
  maxAgeSeconds: maybe(seconds, "The longest age of its tokens, in seconds."),
  vouches: maybe(VouchesFile, "Present: its tokens authenticate clients that name it in `vouchedBy`."),
  statements: flag("Whether its software statements are accepted at registration"),
  /** JOB-D-18 */
  jobs: flag(
    "Whether the claim `mandate_job` of its grants and tokens names a job of its own, by which it ends them",
  ),
  grants: maybe(GrantsFile, "Present: its JWT authorization grants are redeemed."),
  workloads: setting(
    v.optional(v.record(text, WorkloadsFile), {}),
    "Its workloads by registration, whose name is part of their names here: platform://NAME/SUB.",
  ),
  claimsFrom: list(
    v.picklist(["token", "sign_in", "userinfo"]),
    "What says which groups and other claims its users have, for rules with `subjects.claims`: token (its subject tokens and grants), sign_in (the ID tokens of signIn) or userinfo (its userinfo endpoint, asked at a sign-in and when it is asked again); nothing by default.",
  ),
  claimsMaxSeconds: setting(
    v.optional(whole(60, 24 * 3600), 900),
    "For how many seconds that counts, from when it was true; 900 by default. Nothing that rests on it lasts longer.",
  ),
  signals: maybe(
    SignalSourceFile,
    "Present: its security events about its own subjects are taken at /signals/NAME.",
  ),
  disabled: setting(
    v.optional(v.boolean(), false),
    "Refuses this issuer in every role, as if it were not configured.",
  ),
  disabledSubjects: list(
    text,
    "Subjects of this issuer, by their `sub` there, that are refused in every role.",
  ),
});

const ConsentIssuerFile = v.strictObject({
  clients: setting(
    v.pipe(v.array(text), v.minLength(1)),
    "The accepted `azp` or `client_id` of such a token.",
  ),
  types,
});

export const ConsentsFile = v.strictObject({
  issuers: setting(
    v.optional(v.record(text, ConsentIssuerFile), {}),
    "The issuers whose users may, with a token for {issuer}/consents, by identifier.",
  ),
});
