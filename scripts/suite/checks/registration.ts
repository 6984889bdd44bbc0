/** RFC 7591 and RFC 7592: clients that register, and manage what they registered. */
import type { Context } from "../context.ts";
import type { Answer } from "../http.ts";
import { type Json, makeKey } from "../keys.ts";
import { CannotAsk, type Client } from "../parties.ts";
import { area } from "../table.ts";
import { given, refused, status, that } from "../verdicts.ts";

const usual = (c: Context): Json => ({
  ...{ client_name: "Client of the suite", grant_types: ["client_credentials"], response_types: [] },
  token_endpoint_auth_method: "client_secret_basic",
  ...c.server.registration,
});
const register = (c: Context, members: Json = {}): Promise<Answer> => c.register({ ...usual(c), ...members });
async function registered(c: Context, members: Json = {}): Promise<Answer> {
  const answer = await register(c, members);
  if (answer.status !== 201)
    throw new CannotAsk(`the registration was refused: ${answer.text.slice(0, 200)}`);
  return answer;
}
const clientOf = ({ body }: Answer): Client => ({
  ...{ id: String(body.client_id), method: "client_secret_basic", secret: String(body.client_secret) },
});
const created = (wants: string, holds: (body: Json) => boolean) =>
  that(`the status 201 and ${wants}`, ({ status: got, body }) => got === 201 && holds(body));
/** Refused as metadata, or registered with another value: RFC 7591 3.2.1 lets a server replace what was asked for. */
const refusedOr = (wants: string, replaced: (body: Json) => boolean) =>
  that(`invalid_client_metadata, or the status 201 and ${wants}`, ({ status: got, body }) =>
    got === 201 ? replaced(body) : got === 400 && body.error === "invalid_client_metadata",
  );

export const registration = area("registration", { needs: ["registration"], basis: "registration.good" }, [
  [
    "registration.good",
    "RFC7591-3.2-1",
    "A registration is answered with 201 and client_id, as application/json.",
    (c) => register(c),
    that(
      "201, application/json and client_id",
      ({ status: got, headers, body }) =>
        got === 201 &&
        /^application\/json\b/.test(headers["content-type"] ?? "") &&
        typeof body.client_id === "string",
    ),
    { basis: undefined },
  ],
  [
    "registration.secret",
    "RFC7591-3.2.1-7",
    "With a secret comes client_secret_expires_at.",
    (c) => register(c),
    created(
      "both",
      (body) => typeof body.client_secret === "string" && typeof body.client_secret_expires_at === "number",
    ),
  ],
  [
    "registration.secret-strength",
    "RFC6749-10.10-2",
    "The secret has 128 bits at least.",
    (c) => register(c),
    created("22 characters or more", (body) => String(body.client_secret).length >= 22),
  ],
  [
    "registration.metadata",
    "RFC7591-3.2.1-8",
    "The answer has the registered metadata.",
    (c) => register(c),
    created(
      "client_name, grant_types and the method",
      (body) =>
        body.client_name === "Client of the suite" &&
        [body.grant_types].flat().join() === "client_credentials" &&
        body.token_endpoint_auth_method === "client_secret_basic",
    ),
  ],
  [
    "registration.no-store",
    "RFC6749-5.1-6",
    "The answer, which has a secret, is not stored.",
    (c) => register(c),
    that("no-store", ({ headers }) => /\bno-store\b/.test(headers["cache-control"] ?? "")),
  ],
  [
    "registration.usable",
    "RFC7591-3.1-1",
    "The client gets a token with its new secret.",
    async (c) => c.clientCredentials(clientOf(await registered(c)), { scope: undefined }),
    given,
  ],
  [
    "registration.no-responses",
    "RFC7591-2.1-1",
    "Client credentials need no response type: the list may be empty.",
    (c) => register(c, { response_types: [] }),
    status(201),
  ],
  [
    "registration.unique",
    "RFC7591-3.2.1-4",
    "Two clients have different names and secrets.",
    (c) => register(c),
    that("different ones", async ({ body }, c) => {
      const { body: other } = await register(c);
      return body.client_id !== other.client_id && body.client_secret !== other.client_secret;
    }),
  ],
  [
    "registration.own-id",
    "RFC7591-6-1",
    "A client_id in the request is not taken.",
    (c) => register(c, { client_id: "suite-chosen" }),
    that(
      "400, or 201 with another client_id",
      ({ status: got, body }) => got === 400 || (got === 201 && body.client_id !== "suite-chosen"),
    ),
  ],
  [
    "registration.own-secret",
    "RFC7592-2.2-8",
    "A client does not choose its secret.",
    (c) => register(c, { client_secret: "chosen-chosen-chosen-chosen-chosen" }),
    that(
      "400, or another secret",
      ({ status: got, body }) => got === 400 || body.client_secret !== "chosen-chosen-chosen-chosen-chosen",
    ),
  ],
  [
    "registration.unknown-member",
    "RFC7591-2-20",
    "Metadata that are not known are ignored.",
    (c) => register(c, { suite_unknown: { a: 1 } }),
    created("no suite_unknown", (body) => body.suite_unknown === undefined),
  ],
  [
    "registration.key",
    "RFC7591-2-18",
    "A client with a key gets a token by it.",
    async (c) => {
      const key = makeKey("registered-1");
      const answer = await registered(c, {
        token_endpoint_auth_method: "private_key_jwt",
        jwks: { keys: [key.jwk] },
      });
      const { client_id: id, token_endpoint_auth_method: method } = answer.body;
      if (method !== "private_key_jwt") throw new CannotAsk(`the server registered the method ${method}`);
      return c.clientCredentials({ id: String(id), method, key }, { scope: undefined });
    },
    given,
    { needs: ["registration", "private_key_jwt"] },
  ],
  [
    "registration.two-key-sets",
    "RFC7591-2-17",
    "jwks and jwks_uri are not registered together.",
    (c) =>
      register(c, {
        token_endpoint_auth_method: "private_key_jwt",
        jwks: { keys: [makeKey("r").jwk] },
        jwks_uri: c.scene.idp.jwksUri,
      }),
    refusedOr("one of them", ({ jwks, jwks_uri: url }) => jwks === undefined || url === undefined),
  ],
  [
    "registration.unknown-method",
    "RFC7591-3.2.2-5",
    "An authentication method that is not known is refused or replaced.",
    (c) => register(c, { token_endpoint_auth_method: "suite_method" }),
    refusedOr("another method", (body) => body.token_endpoint_auth_method !== "suite_method"),
  ],
  [
    "registration.bad-type",
    "RFC7591-3.2.2-5",
    "grant_types that is no list is refused or replaced.",
    (c) => register(c, { grant_types: "client_credentials" }),
    refusedOr("a list", (body) => Array.isArray(body.grant_types)),
  ],
  [
    "registration.bad-redirect",
    "RFC7591-3.2.2-4",
    "A redirect URI with a fragment is invalid_redirect_uri.",
    (c) =>
      register(c, {
        grant_types: ["authorization_code"],
        response_types: ["code"],
        redirect_uris: ["https://app.example/cb#x"],
      }),
    refused("invalid_redirect_uri", "invalid_client_metadata"),
  ],
  [
    "registration.http-redirect",
    "RFC7591-5-3",
    "A redirect URI of http that is not this machine is refused.",
    (c) =>
      register(c, {
        grant_types: ["authorization_code"],
        response_types: ["code"],
        redirect_uris: ["http://app.example/cb"],
      }),
    refused("invalid_redirect_uri", "invalid_client_metadata"),
  ],
  [
    "registration.no-json",
    "RFC7591-3.2.2-2",
    "What is not JSON is refused, with an error.",
    (c) => c.register("{"),
    refused("invalid_client_metadata", "invalid_request"),
  ],
  [
    "registration.array",
    "RFC7591-3-1",
    "What is no object is refused, with an error.",
    (c) => c.register("[]"),
    refused("invalid_client_metadata", "invalid_request"),
  ],
  [
    "registration.tls-subject",
    "RFC8705-2.1.2-1",
    "tls_client_auth without a subject is refused or replaced.",
    (c) => register(c, { token_endpoint_auth_method: "tls_client_auth" }),
    refusedOr("another method", (body) => body.token_endpoint_auth_method !== "tls_client_auth"),
    { needs: ["registration", "tls_client_auth"] },
  ],
  [
    "registration.get",
    "RFC7591-3-1",
    "A GET registers nothing.",
    (c) => c.get(c.endpoint("registration_endpoint")),
    that("a status of 4xx", ({ status: got }) => got >= 400 && got < 500),
  ],
]);

const current = (c: Context, { body }: Answer, members: Json = {}): Json => ({
  ...usual(c),
  client_id: body.client_id,
  ...members,
});
const after = async (c: Context, method: string): Promise<Answer> => {
  const answer = await registered(c);
  const { status: got } = await c.manage("DELETE", answer);
  if (got !== 204) throw new CannotAsk("the registration was not deleted");
  return method === "token" ? c.clientCredentials(clientOf(answer)) : c.manage(method, answer);
};

export const management = area(
  "registration management",
  { needs: ["registration", "management"], basis: "management.read" },
  [
    [
      "management.uri",
      "RFC7592-3-1",
      "The answer has registration_client_uri, an https URL, and a token for it.",
      (c) => register(c),
      created(
        "both",
        (body) =>
          /^https:\/\//.test(String(body.registration_client_uri)) &&
          typeof body.registration_access_token === "string",
      ),
      { basis: "registration.good" },
    ],
    [
      "management.read",
      "RFC7592-2.1-1",
      "A client reads its registration.",
      async (c) => c.manage("GET", await registered(c)),
      that(
        "200 and its client_id",
        ({ status: got, body }) => got === 200 && typeof body.client_id === "string",
      ),
      { basis: "management.uri" },
    ],
    [
      "management.wrong-token",
      "RFC7592-2.1-4",
      "A wrong registration access token is 401.",
      async (c) => c.manage("GET", await registered(c), undefined, "Bearer wrong"),
      status(401),
    ],
    [
      "management.no-token",
      "RFC7592-2-1",
      "A request that comes with other credentials is refused.",
      async (c) => c.manage("GET", await registered(c), undefined, "Basic eDp5"),
      status(400, 401),
    ],
    [
      "management.token-of-another",
      "RFC7592-B-3",
      "The token of one client does not open the registration of another.",
      async (c) => {
        const [one, other] = [await registered(c), await registered(c)];
        return c.manage("GET", one, undefined, `Bearer ${other.body.registration_access_token}`);
      },
      status(401, 403),
    ],
    [
      "management.replace",
      "RFC7592-2.2-3",
      "An update replaces what was there.",
      async (c) => {
        const answer = await registered(c, { client_uri: "https://app.example" });
        return c.manage("PUT", answer, current(c, answer, { client_name: "Renamed" }));
      },
      that(
        "200, the new name and no client_uri",
        ({ status: got, body }) =>
          got === 200 && body.client_name === "Renamed" && body.client_uri === undefined,
      ),
    ],
    [
      "management.other-id",
      "RFC7592-2.2-6",
      "An update with another client_id is refused.",
      async (c) => {
        const answer = await registered(c);
        return c.manage("PUT", answer, current(c, answer, { client_id: "suite-other" }));
      },
      that("a status of 4xx", ({ status: got }) => got >= 400 && got < 500),
    ],
    [
      "management.other-secret",
      "RFC7592-2.2-7",
      "An update with another secret is refused.",
      async (c) => {
        const answer = await registered(c);
        return c.manage(
          "PUT",
          answer,
          current(c, answer, { client_secret: "chosen-chosen-chosen-chosen-chosen" }),
        );
      },
      that("a status of 4xx", ({ status: got }) => got >= 400 && got < 500),
    ],
    [
      "management.delete",
      "RFC7592-2.3-3",
      "A deletion is answered with 204.",
      async (c) => c.manage("DELETE", await registered(c)),
      status(204),
    ],
    [
      "management.deleted",
      "RFC7592-2.1-5",
      "What was deleted is read by its old token no more: 401.",
      (c) => after(c, "GET"),
      status(401),
      { basis: "management.delete" },
    ],
    [
      "management.deleted-client",
      "RFC7592-2.3-1",
      "A deleted client gets no token.",
      (c) => after(c, "token"),
      refused("invalid_client"),
      { basis: "management.delete" },
    ],
    [
      "management.deleted-tokens",
      "RFC7592-2.3-2",
      "The tokens of a deleted client end with it.",
      async (c) => {
        const answer = await registered(c);
        const token = await c.tokenOf(c.clientCredentials(clientOf(answer)));
        await c.manage("DELETE", answer);
        return c.introspect("gate", token);
      },
      that('"active": false', ({ body }) => body.active === false),
      { needs: ["registration", "management", "introspection"], basis: "management.delete" },
    ],
    [
      "management.method",
      "RFC7592-2-3",
      "A method that is not supported is refused as such.",
      async (c) => c.manage("POST", await registered(c), {}),
      status(404, 405, 501),
    ],
  ],
);
