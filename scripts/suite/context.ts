/** What a check can do: each action sends one good request, and every part of it can be changed or left out. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Identity } from "./certificates.ts";
import { type Answer, type Exchanged, type Sent, send, told } from "./http.ts";
import { claimsOf, isJwt, type Json, makeKey, randomId } from "./keys.ts";
import { makeMinted } from "./minted.ts";
import { CannotAsk, type Client, type Feature, type Names, type Role } from "./parties.ts";
import type { Scene } from "./scene.ts";

export const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
export const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
export const DEFERRED = "urn:ietf:params:oauth:grant-type:deferred";
export const BY_JWT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
export const BY_SVID = "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe";
export const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
export const JWT = "urn:ietf:params:oauth:token-type:jwt";
export const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
export const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

/** `undefined` leaves a parameter out, a list repeats it. */
export type Form = Record<string, string | readonly string[] | undefined>;
export type Extra = {
  headers?: Record<string, string | readonly string[]>;
  certificate?: Identity;
  url?: string;
  query?: string;
};

export type Server = {
  issuer: string;
  metadata: Json;
  tokenEndpoint: string;
  ca: readonly string[];
  offers: ReadonlySet<Feature>;
  signals: string | undefined;
  subjectToken: string | undefined;
  registration: Json;
};

export type Context = ReturnType<typeof makeContext>;

const FORM_TYPE = "application/x-www-form-urlencoded";
const EVENT_WAIT_MS = 8_000;

export const encode = (form: Form): string =>
  new URLSearchParams(
    Object.entries(form).flatMap(([name, values]) =>
      values === undefined ? [] : [values].flat().map((value) => [name, String(value)]),
    ),
  ).toString();

/** RFC 6749 2.3.1: both halves are form-encoded. */
export const basic = (id: string, secret: string): string => {
  const half = (text: string): string => encode({ "": text }).slice(1);
  return `Basic ${Buffer.from(`${half(id)}:${half(secret)}`).toString("base64")}`;
};

export function makeContext(scene: Scene, server: Server, roles: Record<Role, Client>, names: Names) {
  const exchanged: Exchanged[] = [];
  const { tokenEndpoint } = server;
  const minted = makeMinted(scene, server, roles, names);
  const { svid, assertion, userToken, platformToken, idToken, details } = minted;

  async function raw(sent: Sent): Promise<Answer> {
    const answer = await send(sent, server.ca);
    exchanged.push(told(sent, answer));
    return answer;
  }

  /** The URL of an endpoint; with a certificate that of the listener for certificates, where there is one. */
  function endpoint(name: string, byCertificate = false): string {
    const aliases = (server.metadata.mtls_endpoint_aliases ?? {}) as Json;
    const url = (byCertificate ? aliases[name] : undefined) ?? server.metadata[name];
    if (name === "token_endpoint" && url === undefined) return tokenEndpoint;
    if (typeof url !== "string") throw new CannotAsk(`the metadata have no ${name}`);
    return url;
  }

  function post(name: string, form: Form | string, { headers, certificate, url, query = "" }: Extra = {}) {
    return raw({
      method: "POST",
      url: `${url ?? endpoint(name, certificate !== undefined)}${query}`,
      headers: { "content-type": FORM_TYPE, accept: "application/json", ...headers },
      body: typeof form === "string" ? form : encode(form),
      certificate,
    });
  }

  /** How a client proves itself: parameters, header fields, a certificate. */
  function proofOf(client: Client): { form: Form; extra: Extra } {
    const { id, method, secret = "", identity } = client;
    switch (method) {
      case "client_secret_basic":
        return { form: {}, extra: { headers: { authorization: basic(id, secret) } } };
      case "client_secret_post":
        return { form: { client_id: id, client_secret: secret }, extra: {} };
      case "private_key_jwt":
        return {
          form: { client_id: id, client_assertion_type: BY_JWT, client_assertion: assertion(client) },
          extra: {},
        };
      case "spiffe_jwt":
        return {
          form: { client_assertion_type: BY_SVID, client_assertion: svid(id.split("/").at(-1) ?? "") },
          extra: {},
        };
      default:
        return { form: { client_id: id }, extra: identity === undefined ? {} : { certificate: identity } };
    }
  }

  const clientOf = (who: Role | Client): Client => (typeof who === "string" ? roles[who] : who);

  function asClient(name: string, who: Role | Client, form: Form, extra: Extra = {}): Promise<Answer> {
    const proof = proofOf(clientOf(who));
    return post(
      name,
      { ...proof.form, ...form },
      { ...proof.extra, ...extra, headers: { ...proof.extra.headers, ...extra.headers } },
    );
  }

  const token = (who: Role | Client, form: Form, extra?: Extra): Promise<Answer> =>
    asClient("token_endpoint", who, form, extra);

  const clientCredentials = (who: Role | Client, form: Form = {}, extra?: Extra): Promise<Answer> =>
    token(who, { grant_type: "client_credentials", resource: names.api, scope: names.read, ...form }, extra);

  /** The token of a good answer, for a request that prepares another one. */
  async function tokenOf(answer: Answer | Promise<Answer>): Promise<string> {
    const { status, body, text, fault } = await answer;
    if (status === 200 && typeof body.access_token === "string") return body.access_token;
    throw new CannotAsk(`a request before it was refused: ${fault ?? `${status} ${text.slice(0, 200)}`}`);
  }

  async function actorToken(role: Role): Promise<{ actor_token: string; actor_token_type: string }> {
    const client = roles[role];
    if (client.method === "spiffe_jwt") return { actor_token: svid(role), actor_token_type: JWT };
    return { actor_token: await tokenOf(clientCredentials(role)), actor_token_type: ACCESS_TOKEN };
  }

  /** The user's token of a good exchange, with its type. */
  const subject = (): { subject_token: string; subject_token_type: string } =>
    server.subjectToken === undefined
      ? { subject_token: userToken(), subject_token_type: JWT }
      : { subject_token: server.subjectToken, subject_token_type: ACCESS_TOKEN };

  /** A delegation: of the planner for alice at `booking`, unless it says otherwise. */
  async function exchange(role: Role, form: Form = {}, extra?: Extra): Promise<Answer> {
    const actor = "actor_token" in form ? {} : await actorToken(role);
    const asked = { resource: names.booking, scope: `${names.read} ${names.write}` };
    return token(role, { grant_type: EXCHANGE, ...subject(), ...actor, ...asked, ...form }, extra);
  }

  const impersonate = (role: Role, form: Form = {}, extra?: Extra): Promise<Answer> =>
    exchange(
      role,
      {
        actor_token: undefined,
        actor_token_type: undefined,
        resource: names.api,
        scope: names.read,
        ...form,
      },
      extra,
    );

  /** A token that came of another token of this server. */
  const onward = (
    role: Role,
    subject: string,
    resource: string,
    form: Form = {},
    extra?: Extra,
  ): Promise<Answer> =>
    exchange(
      role,
      { subject_token: subject, subject_token_type: ACCESS_TOKEN, resource, scope: names.read, ...form },
      extra,
    );

  /** The planner's token for `booking`, the booking's for `crew`, the crew's for `api`. */
  async function chain(): Promise<[planner: string, booking: string, crew: string]> {
    const first = await tokenOf(exchange("planner"));
    const second = await tokenOf(onward("booking", first, names.crew));
    return [first, second, await tokenOf(onward("crew", second, names.api))];
  }

  const introspect = (
    role: Role | Client,
    subject: string,
    form: Form = {},
    extra?: Extra,
  ): Promise<Answer> => asClient("introspection_endpoint", role, { token: subject, ...form }, extra);

  const revoke = (
    role: Role | Client,
    subject: string | undefined,
    form: Form = {},
    extra?: Extra,
  ): Promise<Answer> => asClient("revocation_endpoint", role, { token: subject, ...form }, extra);

  const redeem = (assertionOf: string | undefined, form: Form = {}, extra?: Extra): Promise<Answer> =>
    token("guest", { grant_type: JWT_BEARER, assertion: assertionOf, resource: names.api, ...form }, extra);

  /** An ID-JAG for the partner, by an ID token of the client. */
  const askIdJag = (form: Form = {}, extra?: Extra): Promise<Answer> =>
    token(
      "machine",
      {
        ...{ grant_type: EXCHANGE, requested_token_type: ID_JAG, audience: names.partner, scope: names.read },
        ...{ subject_token: idToken(), subject_token_type: ID_TOKEN },
        ...form,
      },
      extra,
    );

  const platformGrant = (form: Form = {}, extra?: Extra): Promise<Answer> =>
    post(
      "token_endpoint",
      { grant_type: JWT_BEARER, assertion: platformToken(), resource: names.api, scope: names.read, ...form },
      extra,
    );

  const register = (metadata: Json | string, extra: Extra = {}): Promise<Answer> =>
    raw({
      method: "POST",
      url: extra.url ?? endpoint("registration_endpoint"),
      headers: { "content-type": "application/json", accept: "application/json", ...extra.headers },
      body: typeof metadata === "string" ? metadata : JSON.stringify(metadata),
    });
  const manage = (
    method: string,
    { body }: Answer,
    metadata?: Json,
    authorization?: string,
  ): Promise<Answer> => {
    if (typeof body.registration_client_uri !== "string")
      throw new CannotAsk("no registration_client_uri was given");
    return raw({
      method,
      url: body.registration_client_uri,
      headers: {
        authorization: authorization ?? `Bearer ${body.registration_access_token}`,
        ...(metadata !== undefined && { "content-type": "application/json" }),
      },
      body: metadata && JSON.stringify(metadata),
    });
  };

  /** Publishes a client's metadata document, and returns the client. */
  function documentClient(
    change: (document: Json, url: string) => Json = (document) => document,
    page = {},
  ): Client {
    const path = `/documents/${randomId()}`;
    const url = `${scene.origin}${path}`;
    const key = makeKey("document-1");
    const usual = {
      ...{ client_id: url, client_name: "Agent of the suite", token_endpoint_auth_method: "private_key_jwt" },
      ...{ grant_types: ["client_credentials"], response_types: [], jwks: { keys: [key.jwk] } },
    };
    scene.pages.set(path, { body: JSON.stringify(change(usual, url)), ...page });
    return { id: url, method: "private_key_jwt", key };
  }

  const askDetails = (form: Form = {}): Promise<Answer> =>
    token("clerk", {
      ...{ grant_type: "client_credentials", resource: names.ledger, scope: names.write },
      ...{ authorization_details: details(), ...form },
    });

  /** An exchange of an agent whose user has not agreed, and that can wait. */
  const askDeferred = (form: Form = {}, extra?: Extra): Promise<Answer> =>
    exchange(
      "asker",
      { resource: names.api, scope: names.read, completion_mode: "deferred", ...form },
      extra,
    );
  async function deferred(form: Form = {}, extra?: Extra): Promise<Json> {
    const sub = `user-${randomId()}`;
    const { body, text } = await askDeferred(
      { subject_token: userToken({ claims: { sub } }), ...form },
      extra,
    );
    if (typeof body.deferral_code !== "string") throw new CannotAsk(`no deferral code was given: ${text}`);
    return body;
  }
  const poll = (role: Role, code: unknown, form: Form = {}, extra?: Extra): Promise<Answer> =>
    token(role, { grant_type: DEFERRED, deferral_code: String(code), ...form }, extra);

  const push = (set: string, headers: Record<string, string> = {}): Promise<Answer> => {
    if (server.signals === undefined) throw new CannotAsk("the adapter names no place for events");
    const usual = { "content-type": "application/secevent+jwt", accept: "application/json" };
    return raw({ method: "POST", url: server.signals, headers: { ...usual, ...headers }, body: set });
  };

  /** The first event for the receiver of the scene that fits. */
  async function awaitEvent(
    fits: (claims: Json) => boolean,
  ): Promise<{ body: string; authorization: string }> {
    const { got } = scene.receiver;
    const untilMs = Date.now() + EVENT_WAIT_MS;
    for (;;) {
      const found = got.find(({ body }) => fits(claimsOf(body)));
      if (found !== undefined) return found;
      if (Date.now() > untilMs) throw new CannotAsk(`no such event came within ${EVENT_WAIT_MS / 1000} s`);
      await sleep(20);
    }
  }

  /** What a token says: its claims, or for an opaque one what introspection tells. */
  async function read(tokenText: unknown): Promise<Json> {
    if (isJwt(tokenText)) return claimsOf(tokenText);
    if (!server.offers.has("introspection"))
      throw new CannotAsk("the token is opaque, and there is no introspection");
    return (await introspect("gate", String(tokenText))).body;
  }

  return {
    ...minted,
    ...{
      scene,
      server,
      roles,
      names,
      exchanged,
      raw,
      endpoint,
      post,
      asClient,
      token,
      clientCredentials,
      tokenOf,
    },
    ...{
      actorToken,
      subject,
      exchange,
      impersonate,
      onward,
      chain,
      introspect,
      revoke,
      redeem,
      askIdJag,
      platformGrant,
    },
    ...{ register, manage, documentClient, askDetails, askDeferred, deferred, poll, push, awaitEvent, read },
    /** A GET without credentials. */
    get: (url: string, headers: Record<string, string> = {}): Promise<Answer> =>
      raw({ method: "GET", url, headers }),
  };
}
