/** RFC 6749: the token endpoint, by a client with a secret. */
import { basic, type Form } from "../context.ts";
import { area } from "../table.ts";
import { answers, given, nothing, refused, scopesOf, that } from "../verdicts.ts";

const CC: Form = { grant_type: "client_credentials" };
const WRONG = "wrong-secret-wrong-secret-wrong-secret";
const ASCII = /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/;
/** Every character as %XX, which only a server that decodes reads. */
const percent = (text: string): string =>
  text.replaceAll(/./g, (one) => `%${one.charCodeAt(0).toString(16).padStart(2, "0")}`);

export const tokenEndpoint = area(
  "token endpoint",
  { needs: ["client_credentials"], basis: "token.credentials" },
  [
    [
      "token.credentials",
      "RFC6749-5.1-1",
      "A client with a secret gets a token by client credentials.",
      (c) => c.clientCredentials("machine"),
      given,
      { basis: undefined },
    ],
    [
      "token.json",
      "RFC6749-5.1-5",
      "The answer is application/json.",
      (c) => c.clientCredentials("machine"),
      that("the content type application/json", ({ headers }) =>
        /^application\/json\b/.test(headers["content-type"] ?? ""),
      ),
    ],
    [
      "token.no-store",
      "RFC6749-5.1-6",
      "An answer with a token has Cache-Control: no-store.",
      (c) => c.clientCredentials("machine"),
      that("no-store", ({ headers }) => /\bno-store\b/i.test(headers["cache-control"] ?? "")),
    ],
    [
      "token.expires-in",
      "RFC6749-5.1-2",
      "The answer has expires_in, a number above zero.",
      (c) => c.clientCredentials("machine"),
      answers("expires_in", ({ expires_in: life }) => typeof life === "number" && life > 0),
    ],
    [
      "token.no-refresh",
      "RFC6749-4.4.3-1",
      "Client credentials give no refresh token.",
      (c) => c.clientCredentials("machine"),
      answers("no refresh_token", (body) => body.refresh_token === undefined),
    ],
    [
      "token.scope-told",
      "RFC6749-5.1-4",
      "A scope that is not the requested one is told: to a request without scope, that of the token.",
      (c) => c.clientCredentials("machine", { scope: undefined }),
      that("invalid_scope, a scope in the answer, or a token without one", async ({ status, body }, c) => {
        if (status !== 200) return body.error === "invalid_scope";
        return (
          scopesOf(body.scope).length > 0 || scopesOf((await c.read(body.access_token)).scope).length === 0
        );
      }),
    ],
    [
      "token.get",
      "RFC6749-3.2-4",
      "A token request by GET gets no token.",
      (c) =>
        c.raw({
          ...{
            method: "GET",
            url: `${c.server.tokenEndpoint}?grant_type=client_credentials&scope=${c.names.read}`,
          },
          headers: { authorization: basic(c.roles.machine.id, c.roles.machine.secret ?? "") },
        }),
      that(
        "a status other than 200 and no token",
        ({ status, body }) => status !== 200 && body.access_token === undefined,
      ),
    ],
    [
      "token.repeated",
      "RFC6749-3.2-7",
      "A parameter that comes twice is invalid_request.",
      (c) => c.clientCredentials("machine", { scope: [c.names.read, c.names.read] }),
      refused("invalid_request"),
    ],
    [
      "token.empty",
      "RFC6749-3.2-5",
      "A parameter without a value counts as left out.",
      (c) => c.clientCredentials("machine", { scope: "" }),
      given,
    ],
    [
      "token.unknown-parameter",
      "RFC6749-3.2-6",
      "A parameter that is not known is ignored.",
      (c) => c.clientCredentials("machine", { suite_unknown: "x" }),
      given,
    ],
    [
      "token.no-grant-type",
      "RFC6749-5.2-2",
      "A request without grant_type is invalid_request.",
      (c) => c.clientCredentials("machine", { grant_type: undefined }),
      refused("invalid_request"),
    ],
    [
      "token.unknown-grant-type",
      "RFC6749-5.2-8",
      "A grant type that is not known is unsupported_grant_type.",
      (c) => c.clientCredentials("machine", { grant_type: "urn:suite:no-such-grant" }),
      refused("unsupported_grant_type"),
    ],
    [
      "token.grant-type-case",
      "RFC6749-1.9-1",
      "Values are compared case-sensitively.",
      (c) => c.clientCredentials("machine", { grant_type: "Client_Credentials" }),
      refused("unsupported_grant_type"),
    ],
    [
      "token.unknown-scope",
      "RFC6749-5.2-9",
      "A scope that is not known is invalid_scope.",
      (c) => c.clientCredentials("machine", { scope: "suite-no-such-scope" }),
      refused("invalid_scope"),
    ],
    [
      "token.dropped-scope",
      "RFC6749-3.3-3",
      "A scope that is not given is not dropped in silence.",
      (c) => c.clientCredentials("machine", { scope: `${c.names.read} suite-no-such-scope` }),
      that("invalid_scope, or the scope that is left", ({ status, body }, c) =>
        status === 200 ? scopesOf(body.scope).join(" ") === c.names.read : body.error === "invalid_scope",
      ),
    ],
    [
      "token.malformed-scope",
      "RFC6749-3.3-1",
      "A scope with a character outside its grammar is invalid_scope.",
      (c) => c.clientCredentials("machine", { scope: `${c.names.read} "` }),
      refused("invalid_scope", "invalid_request"),
    ],
    [
      "token.error-form",
      "RFC6749-5.2-1",
      "An error is 400 and application/json, with error.",
      (c) => c.clientCredentials("machine", { grant_type: "urn:suite:no-such-grant" }),
      that(
        "400 with a member error in application/json",
        ({ status, headers, body }) =>
          status === 400 &&
          /^application\/json\b/.test(headers["content-type"] ?? "") &&
          typeof body.error === "string",
      ),
    ],
    [
      "token.error-characters",
      "RFC6749-5.2-11",
      "error_description has printable ASCII alone, and echoes nothing else.",
      (c) => c.clientCredentials("machine", { grant_type: 'urn:suite:"é\\' }),
      that(
        "printable ASCII without quotes and backslashes",
        ({ status, body }) => status === 400 && ASCII.test(String(body.error_description ?? "")),
      ),
    ],
    [
      "token.resource",
      "RFC8707-2-7",
      "The token is for the requested resource.",
      (c) => c.clientCredentials("machine"),
      that("aud is the requested resource", async ({ body }, c) => {
        const { aud } = await c.read(body.access_token);
        return [aud].flat().join() === c.names.api;
      }),
      { needs: ["client_credentials", "jwt_access_tokens", "resource"] },
    ],
    [
      "token.resource-fragment",
      "RFC8707-2-3",
      "A resource with a fragment is invalid_target.",
      (c) => c.clientCredentials("machine", { resource: `${c.names.api}#part` }),
      refused("invalid_target"),
      { needs: ["client_credentials", "resource"] },
    ],
    [
      "token.resource-relative",
      "RFC8707-2-2",
      "A resource that is no absolute URI is invalid_target.",
      (c) => c.clientCredentials("machine", { resource: "/api" }),
      refused("invalid_target"),
      { needs: ["client_credentials", "resource"] },
    ],
    [
      "token.resource-unknown",
      "RFC8707-2-9",
      "A resource that is not known is invalid_target.",
      (c) => c.clientCredentials("machine", { resource: "https://unknown.suite.example" }),
      refused("invalid_target"),
      { needs: ["client_credentials", "resource"] },
    ],
    [
      "client.wrong-secret",
      "RFC6749-5.2-5",
      "A wrong secret by Basic is invalid_client, 401 with a challenge.",
      (c) => c.clientCredentials({ ...c.roles.machine, method: "client_secret_basic", secret: WRONG }),
      that(
        "401, invalid_client and WWW-Authenticate",
        ({ status, body, headers }) =>
          status === 401 &&
          body.error === "invalid_client" &&
          /^basic\b/i.test(headers["www-authenticate"] ?? ""),
      ),
    ],
    [
      "client.unknown",
      "RFC6749-5.2-3",
      "A client that is not known is invalid_client.",
      (c) =>
        c.clientCredentials({ id: "suite-no-such-client", method: "client_secret_basic", secret: WRONG }),
      refused("invalid_client"),
    ],
    [
      "client.none",
      "RFC6749-3.2.1-1",
      "A request without client authentication is invalid_client.",
      (c) => c.post("token_endpoint", { ...CC, scope: c.names.read, resource: c.names.api }),
      refused("invalid_client", "invalid_request"),
    ],
    [
      "client.id-alone",
      "RFC6749-2.2-2",
      "A client_id alone proves nothing.",
      (c) => c.post("token_endpoint", { ...CC, client_id: c.roles.machine.id, resource: c.names.api }),
      nothing,
    ],
    [
      "client.two-methods",
      "RFC6749-2.3-4",
      "A request with the secret by Basic and in the body is refused.",
      (c) => {
        const { id, secret } = c.roles.machine;
        return c.clientCredentials(
          { ...c.roles.machine, method: "client_secret_basic" },
          { client_id: id, client_secret: secret },
        );
      },
      refused("invalid_request", "invalid_client"),
    ],
    [
      "client.secret-in-url",
      "RFC6749-2.3.1-6",
      "Credentials in the URL of the request are not read.",
      (c) => {
        const { id, secret = "" } = c.roles.machine;
        const query = `?client_id=${encodeURIComponent(id)}&client_secret=${encodeURIComponent(secret)}`;
        return c.post("token_endpoint", { ...CC, scope: c.names.read, resource: c.names.api }, { query });
      },
      nothing,
    ],
    [
      "client.form-encoded",
      "RFC6749-2.3.1-2",
      "Both halves of Basic are form-decoded.",
      (c) => {
        const { id, secret = "" } = c.roles.machine;
        const pair = Buffer.from(`${percent(id)}:${percent(secret)}`).toString("base64");
        return c.post(
          "token_endpoint",
          { ...CC, scope: c.names.read, resource: c.names.api },
          { headers: { authorization: `Basic ${pair}` } },
        );
      },
      given,
    ],
    [
      "client.other-id",
      "RFC6749-3.2.1-2",
      "A client_id in the body that is not that of Basic is refused.",
      (c) =>
        c.clientCredentials(
          { ...c.roles.machine, method: "client_secret_basic" },
          { client_id: "suite-other" },
        ),
      refused("invalid_client", "invalid_request"),
    ],
    [
      "client.body",
      "RFC6749-2.3.1-3",
      "A client with a secret in the body gets a token.",
      (c) => c.clientCredentials("second"),
      given,
      { needs: ["client_credentials", "client_secret_post"] },
    ],
    [
      "client.body-wrong-secret",
      "RFC6749-2.3.1-3",
      "A wrong secret in the body is invalid_client.",
      (c) => c.clientCredentials({ ...c.roles.second, secret: WRONG }),
      refused("invalid_client"),
      { needs: ["client_credentials", "client_secret_post"], basis: "client.body" },
    ],
    [
      "client.secret-case",
      "RFC6749-1.9-1",
      "A secret is compared case-sensitively.",
      (c) => {
        const { secret = "" } = c.roles.machine;
        const other = secret.toUpperCase() === secret ? secret.toLowerCase() : secret.toUpperCase();
        return c.clientCredentials({ ...c.roles.machine, secret: other });
      },
      refused("invalid_client"),
    ],
  ],
);
