/** Clients that are known by the URL of their metadata document. */
import type { Context } from "../context.ts";
import type { Answer } from "../http.ts";
import { type Json, makeKey, randomId } from "../keys.ts";
import { area, type Row } from "../table.ts";
import { given, notGiven, that } from "../verdicts.ts";

type Change = (document: Json, url: string) => Json;
const ask = (c: Context, change?: Change, page?: object): Promise<Answer> =>
  c.clientCredentials(c.documentClient(change, page));
const wrong = (id: string, clause: string, what: string, change: Change | undefined, page?: object): Row => [
  `document.${id}`,
  clause,
  `A document ${what} makes no client.`,
  (c) => ask(c, change, page),
  notGiven,
];
const member = (id: string, clause: string, what: string, members: Json): Row =>
  wrong(id, clause, what, (document) => ({ ...document, ...members }));

/** A good client, which calls itself by another form of its URL. */
const called = (id: string, clause: string, must: string, other: (url: URL) => string): Row => [
  `document.${id}`,
  clause,
  must,
  async (c) => {
    const client = c.documentClient();
    return c.clientCredentials({ ...client, id: other(new URL(client.id)) });
  },
  notGiven,
];

export const documents = area("client documents", { needs: ["cimd"], basis: "document.good" }, [
  [
    "document.good",
    "PROD-1.6-3",
    "A client gets a token as the URL of its document.",
    (c) => ask(c),
    given,
    { basis: undefined },
  ],
  [
    "document.metadata",
    "CIMD-6-1",
    "The metadata say that documents are supported.",
    (c) => c.get(`${c.server.issuer}/.well-known/oauth-authorization-server`),
    that(
      "client_id_metadata_document_supported",
      (_, c) => c.server.metadata.client_id_metadata_document_supported === true,
    ),
    { needs: ["cimd", "metadata"] },
  ],
  [
    "document.json-type",
    "CIMD-4-4",
    "A document may be of another type that ends in +json.",
    (c) => ask(c, undefined, { type: "application/oauth-client+json" }),
    given,
  ],
  member("other-id", "CIMD-4-2", "with another client_id", { client_id: "https://other.example/client" }),
  member("no-id", "CIMD-4-1", "without client_id", { client_id: undefined }),
  member("secret", "CIMD-4.1-2", "with a client_secret", {
    client_secret: "secret-secret-secret-secret-1234567",
  }),
  member("secret-method", "CIMD-4.1-1", "of a method with a secret", {
    token_endpoint_auth_method: "client_secret_basic",
  }),
  wrong("private-key", "CIMD-4.1-3", "with a private key", (document) => {
    const { privateKey, jwk } = makeKey("document-1");
    return { ...document, jwks: { keys: [{ ...jwk, ...(privateKey.export({ format: "jwk" }) as Json) }] } };
  }),
  member("other-key", "CIMD-8.2-3", "whose keys are not those of the assertion", {
    jwks: { keys: [makeKey("document-1").jwk] },
  }),
  wrong("not-found", "CIMD-5-4", "with a status other than 200", undefined, { status: 404 }),
  wrong("created", "CIMD-4-3", "with the status 201", undefined, { status: 201 }),
  wrong("html", "CIMD-4-4", "of the type text/html", undefined, { type: "text/html" }),
  wrong("too-large", "CIMD-8.7-1", "of 200 kB", (document) => ({ ...document, filler: "x".repeat(200_000) })),
  wrong("not-json", "CIMD-5.1-1", "that is not JSON", undefined, { body: "{" }),
  wrong("array", "CIMD-5.1-1", "that is no object", undefined, { body: "[]" }),
  [
    "document.redirect",
    "CIMD-5-5",
    "A redirect is not followed.",
    (c) => {
      const client = c.documentClient();
      const path = `/documents/${randomId()}`;
      const id = `${c.scene.origin}${path}`;
      const page = c.scene.pages.get(new URL(client.id).pathname);
      const body = JSON.stringify({ ...JSON.parse(page?.body ?? "{}"), client_id: id });
      c.scene.pages.set(`${path}-there`, { body });
      c.scene.pages.set(path, { status: 302, location: `${id}-there`, body: "" });
      return c.clientCredentials({ ...client, id });
    },
    notGiven,
  ],
  [
    "document.unauthenticated",
    "CIMD-8.2-2",
    "Such a client authenticates with its key.",
    (c) =>
      c.post("token_endpoint", {
        ...{
          grant_type: "client_credentials",
          client_id: c.documentClient().id,
          resource: c.names.api,
          scope: c.names.read,
        },
      }),
    notGiven,
  ],
  called("fragment", "CIMD-3-7", "A URL with a fragment names no client.", ({ href }) => `${href}#a`),
  called(
    "user",
    "CIMD-3-2",
    "A URL with a user names no client.",
    ({ host, pathname }) => `https://user@${host}${pathname}`,
  ),
  called(
    "dots",
    "CIMD-3-5",
    "A URL with dot segments names no client.",
    ({ origin, pathname }) => `${origin}/documents/..${pathname}`,
  ),
  called("http", "CIMD-3-1", "A URL of http names no client.", ({ href }) => href.replace("https:", "http:")),
  called("case", "CIMD-3-8", "URLs are compared as texts.", ({ href }) =>
    href.replace("localhost", "LOCALHOST"),
  ),
]);
