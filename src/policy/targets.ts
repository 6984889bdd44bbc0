/**
 * Where tokens are for: resource servers, which get access tokens, and partners, authorization servers of other
 * domains, which get JWT authorization grants and never anything else (PROD-1.7-3). What was agreed with a partner
 * (IDC 2.5, IDJAG 5) stands with it: how it calls clients and subjects, what may be carried over, which APIs it has.
 */
import * as v from "valibot";
import { isDocumentUrl } from "../spec/cimd.ts";
import type { SubjectThere } from "../spec/identity-chaining.ts";
import { OWN_CLAIMS } from "../spec/identity-chaining.ts";
import { parseFetchUrl } from "../spec/rfc3986.ts";
import { isScopeToken } from "../spec/rfc6749.ts";
import { checkResources } from "../spec/rfc8707.ts";
import { OWN_ALGORITHMS } from "../spec/rfc8725.ts";
import { parsePattern } from "../spec/spiffe/id.ts";

const name = v.pipe(v.string(), v.nonEmpty());
export const names = v.pipe(v.array(name), v.minLength(1));
export const scopes = v.pipe(
  v.array(v.pipe(v.string(), v.check(isScopeToken, "is not a scope token"))),
  v.minLength(1),
);
export const pattern = v.pipe(
  v.string(),
  v.check((text) => parsePattern(text).ok, "is neither a SPIFFE ID nor a prefix of one that ends in /*"),
);

const common = {
  scopes,
  // RFC8725-3.2-v3: chosen here, target by target, and changed without a word to anybody else.
  alg: v.optional(v.picklist(OWN_ALGORITHMS), "ES256"),
  /** What this target may see of the chain of actors. */
  chain: v.optional(v.picklist(["all", "current"]), "all"),
};

/** Found by any of its names, each exact. */
export const ResourceServer = v.strictObject({
  kind: v.optional(v.literal("resource")),
  names,
  /** The workloads it belongs to: a token for it is meant for them. */
  owners: v.optional(v.array(pattern), []),
  ...common,
});

// --- partners ---------------------------------------------------------------------------------------------------

/** RFC8414-2-1: of somebody else, letter by letter as its metadata has it, so that a slash at its end counts. */
export const foreignIssuer = v.pipe(
  v.string(),
  v.check((url) => parseFetchUrl(url).ok, "is not a plain https URL in its usual spelling"),
  v.check((url) => !url.includes("?"), "has a query"),
);

/** IDJAG-3.1-5: one name there for one client here, so neither folders nor origins. */
const client = v.pipe(
  name,
  v.check(
    (text) => !text.endsWith("/*") && (!/^spiffe:/i.test(text) || parsePattern(text).ok),
    "is neither one client_id nor the SPIFFE ID of a workload",
  ),
);
const clientThere = v.pipe(v.string(), v.regex(/^[\x21-\x7e]+$/, "is not a client_id"));

/** RFC6749-10.14-1: shown to people and kept in stores, here and there. */
const sub = v.pipe(
  name,
  v.check((text) => !/\p{Cc}/u.test(text), "has control characters"),
);

/** IDC-2.5-3, IDJAG-5-2, PROD-3-4: as the partner knows them; in a table whom it does not have is unknown there. */
const subjects = v.union(
  [
    v.literal("keep"),
    v.strictObject({
      prefix: v.pipe(
        sub,
        v.check(
          (text) => !/^(https?|spiffe)(:|$)|:\/\//i.test(text),
          "makes subjects that look like URLs or SPIFFE IDs",
        ),
      ),
    }),
    v.strictObject({
      table: v.pipe(
        v.record(
          sub,
          v.pipe(
            sub,
            v.check((text) => !text.includes("://"), "is a URL or SPIFFE ID"),
          ),
        ),
        // IDJAG-3.1-2
        v.check(
          (table) => new Set(Object.values(table)).size === Object.keys(table).length,
          "makes one subject there of two here",
        ),
      ),
    }),
  ],
  'is neither "keep", { "prefix": … } nor { "table": … }',
);

const claim = v.pipe(
  name,
  v.check(
    (text) => !OWN_CLAIMS.has(text),
    "is a claim that a grant has for itself, or that is never carried over",
  ),
);

const resource = v.pipe(
  v.string(),
  v.check((uri) => checkResources([uri]).ok, "is not an absolute URI without a fragment"),
);

/** As a target it has names like any other, and nobody here owns it. */
export const PartnerServer = v.pipe(
  v.strictObject({
    kind: v.literal("partner"),
    issuer: foreignIssuer,
    aliases: v.optional(v.array(name), []),
    ...common,
    /** By our `client_id`, what it is there. */
    clients: v.optional(v.record(client, clientThere), {}),
    subjects: v.optional(subjects, "keep"),
    /** IDC-2.5-2: of the subject token, what the partner needs. */
    claims: v.optional(v.array(claim), []),
    /** EMA-7.6.1-1: the APIs there that an ID-JAG may name. */
    resources: v.optional(v.array(resource), []),
  }),
  v.transform(({ issuer, aliases, scopes, alg, chain, clients, subjects, claims, resources }) => ({
    names: [issuer, ...aliases],
    owners: [],
    scopes,
    alg,
    chain,
    partner: { issuer, clients, subjects, claims, resources },
  })),
);
type Agreed = v.InferOutput<typeof PartnerServer>["partner"];

/** What was agreed with a partner, in force: a name may be one that every object has, so tables are maps. */
export type Partner = {
  issuer: string;
  clients: ReadonlyMap<string, string>;
  subjects: SubjectThere;
  claims: readonly string[];
  resources: readonly string[];
};

export function readPartner({ clients, subjects, ...agreed }: Agreed): Partner {
  const isTable = typeof subjects === "object" && "table" in subjects;
  return {
    ...agreed,
    clients: new Map(Object.entries(clients)),
    subjects: isTable ? { table: new Map(Object.entries(subjects.table)) } : subjects,
  };
}

/** IDJAG-5-1: as the operator says, else by the URL of its metadata document, which is its name everywhere. */
export function clientIdAt({ clients }: Partner, clientId: string): string | undefined {
  return clients.get(clientId) ?? (isDocumentUrl(clientId) ? clientId : undefined);
}
