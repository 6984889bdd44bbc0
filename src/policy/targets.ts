/**
 * Targets of tokens: resource servers get access tokens; partners, which are authorization servers of other domains, get
 * JWT authorization grants and nothing else (PROD-1.7-3). A partner's entry holds the agreement with it (IDC-2.5-2,
 * IDJAG-5-1): its names for clients and subjects, the claims that are carried over, and its APIs.
 */
import * as v from "valibot";
import { SHOWN_TEXT_CHARS_MAX } from "../limits/input.ts";
import { flag, list, maybe, setting } from "../setting.ts";
import { isDocumentUrl } from "../spec/cimd.ts";
import { OWN_CLAIMS, type SubjectThere } from "../spec/identity-chaining.ts";
import { parseFetchUrl } from "../spec/rfc3986.ts";
import { isScopeToken, OFFLINE_ACCESS } from "../spec/rfc6749.ts";
import { checkResources } from "../spec/rfc8707.ts";
import { OWN_ALGORITHMS } from "../spec/rfc8725.ts";
import { AT_JWT } from "../spec/rfc9068.ts";
import { isWorkloadName, isWorkloadPattern } from "../spec/workload-grant.ts";
import { declaredTypes } from "./detail-types.ts";
import { notCanonical } from "./nearest.ts";
import { type Worded, worded, wordings } from "./worded.ts";

const name = v.pipe(v.string(), v.nonEmpty());
export const names = v.pipe(v.array(name), v.minLength(1));
export const scopes = v.pipe(
  v.array(
    v.pipe(
      v.string(),
      v.check(isScopeToken, "is not a scope token"),
      // REFRESH-D-2: this scope belongs to no target.
      v.check((scope) => scope !== OFFLINE_ACCESS, "is a reserved word: it is no scope of a target"),
    ),
  ),
  v.minLength(1),
);
export const pattern = v.pipe(
  v.string(),
  v.check(
    isWorkloadPattern,
    "is neither the name of a workload (spiffe://… or platform://…) nor a prefix of such names that ends in /*",
  ),
);

const displayText = worded(SHOWN_TEXT_CHARS_MAX);

export const commonOfTargets = {
  scopes: setting(scopes, "The scopes that exist at this target."),
  title: maybe(
    displayText,
    'Its name as users are shown it: one text, or one by language, { "en": …, "de": … }.',
  ),
  sentences: setting(
    v.optional(v.record(name, displayText), {}),
    "By scope: what a client with it may do, as users are shown it; as a title, also by language.",
  ),
  // RFC8725-3.2-v3: the algorithm is set for each target, so it can be changed without affecting others.
  alg: setting(
    v.optional(v.picklist(OWN_ALGORITHMS), "ES256"),
    "The signature algorithm of its tokens; ES256 by default.",
  ),
  details: declaredTypes,
  chain: setting(
    v.optional(v.picklist(["all", "current"]), "all"),
    'The actors that its tokens show: "all" (the default), or the "current" one only.',
  ),
};
export const kindText =
  '"resource" (the default): a resource server; "partner": the authorization server of another company; "transaction": a trust domain for transaction tokens.';

/** The name of one client by its client_id, not of a prefix or an origin. */
const oneClient = v.pipe(
  name,
  v.check(
    (text) => (/^(?:spiffe|platform):/i.test(text) ? isWorkloadName(text) : !text.endsWith("/*")),
    "is neither one client_id nor the name of a workload",
  ),
);

/** JOB-D-15 */
const jobShown = v.picklist(["shown", "pairwise", "hidden"]);
const jobText =
  'What its tokens tell of their job: "shown", its id; "pairwise", an id that no other target sees; "hidden", nothing';

/** A resource server, which a request names by any of `names`, compared exactly. */
export const ResourceServer = v.strictObject({
  kind: maybe(v.literal("resource"), kindText),
  names: setting(names, "The names by which requests name it, compared exactly."),
  owners: list(
    pattern,
    "The SPIFFE IDs of its own workloads: they may exchange tokens for it, and ask about them.",
  ),
  introspectors: list(
    oneClient,
    "The client_ids of clients that may ask about its tokens beside its owners.",
  ),
  binding: setting(
    v.optional(v.picklist(["none", "certificate", "dpop", "any"]), "none"),
    'What its tokens must be bound by: "none" (the default), "certificate", "dpop", or "any" of the two.',
  ),
  typ: setting(
    v.optional(v.picklist([AT_JWT, "JWT"]), AT_JWT),
    'The `typ` of its tokens: "at+jwt" (the default, RFC 9068), or "JWT" for a library that takes no other.',
  ),
  checks: setting(
    v.optional(v.picklist(["offline", "introspection"]), "offline"),
    'How it looks at a token: "offline" (the default), or by "introspection" at each use, so that it refuses one that was ended at once; a closure report says so.',
  ),
  people: flag("Whether clients may ask a user for access to it"),
  job: maybe(jobShown, `${jobText}; "shown" by default.`),
  ...commonOfTargets,
});

// --- partners ---------------------------------------------------------------------------------------------------

/** RFC8414-2-1: the issuer identifier of another server, byte for byte as in its metadata; a final slash counts. */
export const foreignIssuer = v.pipe(
  v.string(),
  v.check((url) => parseFetchUrl(url.split("?", 1)[0] ?? "").ok, notCanonical),
  v.check((url) => !url.includes("?"), "has a query: leave it out"),
);

const clientThere = v.pipe(
  v.string(),
  v.regex(/^[\x21-\x7e]+$/, "is not a client_id: printable ASCII without spaces"),
);

/** RFC6749-10.14-1: subjects are shown to people and stored, so they hold no control characters. */
const sub = v.pipe(
  name,
  v.check((text) => !/\p{Cc}/u.test(text), "has control characters"),
);

const prefix = v.pipe(
  sub,
  v.check(
    (text) => !/^(https?|spiffe)(:|$)|:\/\//i.test(text),
    "would make subjects look like URLs or SPIFFE IDs",
  ),
);
const subThere = v.pipe(
  sub,
  v.check((text) => !text.includes("://"), "is a URL or SPIFFE ID"),
);
const table = v.pipe(
  v.record(sub, subThere),
  // IDJAG-3.1-2: a `sub` at the partner identifies one subject.
  v.check(
    (table) => new Set(Object.values(table)).size === Object.keys(table).length,
    "maps two subjects to the same subject at the partner",
  ),
);

/**
 * IDC-2.5-3, IDJAG-5-2, PROD-3-4: how subjects are named at the partner; a subject that a table lacks gets no grant.
 */
const subjects = v.union(
  [
    v.literal("keep"),
    v.strictObject({ prefix: setting(prefix, "A text put before each `sub`.") }),
    v.strictObject({
      table: setting(table, "The name here for each `sub`; a subject that is not in it is refused."),
    }),
  ],
  'is neither "keep", { "prefix": … } nor { "table": … }',
);

const claim = v.pipe(
  name,
  v.check(
    (text) => !OWN_CLAIMS.has(text),
    "is a claim that the grant sets itself or that is never carried over",
  ),
);

const resource = v.pipe(
  v.string(),
  v.check((uri) => checkResources([uri]).ok, "is not an absolute URI without a fragment"),
);

/** A partner: a target with names like any other, but without owners. */
export const PartnerServer = v.pipe(
  v.strictObject({
    kind: setting(v.literal("partner"), kindText),
    issuer: setting(foreignIssuer, "The issuer identifier of the partner."),
    aliases: list(name, "Further names by which requests may name the partner."),
    ...commonOfTargets,
    /** IDJAG-3.1-5: each client has a name of its own at the partner. */
    clients: setting(
      v.optional(v.record(oneClient, clientThere), {}),
      "By client_id or SPIFFE ID here: its client_id at the partner.",
    ),
    subjects: setting(
      v.optional(subjects, "keep"),
      'How subjects are named at the partner: "keep", { "prefix": … } or { "table": … }.',
    ),
    /** IDC-2.5-2: the claims that are carried over were agreed with the partner. */
    claims: list(claim, "Claims about the subject that are carried over into the grant."),
    /** EMA-7.6.1-1: the APIs at the partner were agreed with it. */
    resources: list(resource, "The APIs behind the partner that a request may name as resource."),
    job: maybe(jobShown, `${jobText}; "pairwise" by default.`),
    /** JOB-D-16: a partner that takes no notice of jobs may go on with what a grant gave it. */
    jobs: setting(
      v.optional(v.picklist(["ignores", "honours"]), "ignores"),
      'Whether it ends what came of a job when the job ends: "honours", or "ignores" (the default).',
    ),
  }),
  v.transform(({ kind: _, issuer, aliases, clients, subjects, claims, resources, jobs, ...rest }) => ({
    ...rest,
    names: [issuer, ...aliases],
    owners: [],
    introspectors: [],
    binding: "none" as const,
    typ: AT_JWT as typeof AT_JWT,
    checks: "offline" as const,
    people: false,
    partner: { issuer, clients, subjects, claims, resources, jobs },
  })),
);
type Agreed = v.InferOutput<typeof PartnerServer>["partner"];

/** The agreement with a partner in force. Tables are maps, because a name may be that of an inherited property. */
export type Partner = {
  issuer: string;
  clients: ReadonlyMap<string, string>;
  subjects: SubjectThere;
  claims: readonly string[];
  resources: readonly string[];
  jobs: "ignores" | "honours";
};

/** The agreement as written, with its tables as maps. */
export function readPartner({ clients, subjects, ...agreed }: Agreed): Partner {
  const isTable = typeof subjects === "object" && "table" in subjects;
  return {
    ...agreed,
    clients: new Map(Object.entries(clients)),
    subjects: isTable ? { table: new Map(Object.entries(subjects.table)) } : subjects,
  };
}

/** IDJAG-5-1: the client_id at the partner: as configured, or else the URL of its metadata document, if it has one. */
export function clientIdAt({ clients }: Partner, clientId: string): string | undefined {
  return clients.get(clientId) ?? (isDocumentUrl(clientId) ? clientId : undefined);
}

/** PAGE-D-47: those with a title that is another one's too, in whatever language. */
export function withSharedTitles<T extends { title?: Worded | undefined }>(
  targets: readonly T[],
): ReadonlySet<T> {
  const byTitle = Map.groupBy(
    targets.flatMap((one) =>
      [...new Set(one.title === undefined ? [] : wordings(one.title))].map((title) => ({ one, title })),
    ),
    ({ title }) => title,
  );
  return new Set(
    [...byTitle.values()].filter((all) => all.length > 1).flatMap((all) => all.map(({ one }) => one)),
  );
}
