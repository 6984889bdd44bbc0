/**
 * An OpenID Provider for tests: metadata, keys and token endpoint by HTTPS; its own sign-in page is a function that the
 * test calls in place of a browser. A test changes `lies` to make it another, or a hostile one.
 */
import { createHash, createPrivateKey, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { calculateJwkThumbprint, importPKCS8, type JWTPayload, SignJWT } from "jose";
import { makeKeyPem, publicJwk } from "../../scripts/dev-keys.ts";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import type { Key } from "./forge.ts";
import { LOOPBACK } from "./web.ts";

export type Lies = {
  /** Members of the metadata in place of the true ones; `undefined` leaves one out. */
  metadata?: Record<string, unknown>;
  claims?: (claims: Record<string, unknown>) => Record<string, unknown>;
  header?: Record<string, unknown>;
  /** The answer of the token endpoint in place of the true one. */
  answer?: (idToken: string) => { status: number; body: unknown };
  /** Signs with a key that it does not publish. */
  foreignKey?: boolean;
  /** What its userinfo endpoint says of a user; there is none without it. */
  userInfo?: (user: string) => unknown;
  /** It gives an ID token with each refresh. */
  idTokens?: true;
  /** How it answers what it is asked about a sign-in: not at all, or in place of the true answer. */
  asked?: (response: ServerResponse) => void;
};

/** How it gives refresh tokens: the same one again, or another one each time. */
export type Refreshing = "none" | "same" | "rotating";

/** What the token endpoint was sent last. */
type Redeemed = { form: URLSearchParams; authorization: string | undefined };

export type TestProvider = {
  issuer: string;
  /** PEM of the authority of its certificate. */
  ca: string;
  lies: Lies;
  redeemed: Redeemed[];
  refreshing: Refreshing;
  /** The users that it does not know any more. */
  disabled: Set<string>;
  /** The questions about a sign-in so far. */
  questions: ("refresh" | "introspection")[];
  /** A refresh token of this user. */
  refreshToken(user: string): string;
  /** A logout token of this user for us; members of `claims` and `header` take the place of the true ones. */
  logoutToken(claims?: object, header?: object): Promise<string>;
  /** The user signs in at the place to which the browser was sent; where the browser is sent back to. */
  signIn(location: string, user?: string): string;
  /** A JWT of the user for this audience, as an app of the company gets it. */
  userToken(sub: string, aud: string, claims?: object): Promise<string>;
  /** With which it signs now. */
  key(): Key;
  /** The members of the configuration for it: its entry among the trusted issuers, and at `signIn`. */
  trusted(extra?: object): Record<string, object>;
  provider(extra?: object): object;
  /** From now on it signs with another key, which it publishes in place of the one before. */
  rotate(): Promise<void>;
  close(): Promise<void>;
};

export const CLIENT_AT_PROVIDER = "mandate-at-company";

export async function startProvider(): Promise<TestProvider> {
  const authority = await makeAuthority("Authority of the provider");
  const tls = await issueServerCertificate(authority, ["localhost", "127.0.0.1"]);
  const makeKey = async () => {
    const pem = await makeKeyPem();
    const jwk = publicJwk(pem);
    return { key: await importPKCS8(pem, "ES256"), pem, jwk, kid: await calculateJwkThumbprint(jwk) };
  };
  let current = await makeKey();
  const foreign = await importPKCS8(await makeKeyPem(), "ES256");
  const codes = new Map<string, { asked: URLSearchParams; user: string }>();
  const self: Pick<TestProvider, "lies" | "redeemed" | "refreshing" | "disabled" | "questions"> = {
    lies: {},
    redeemed: [],
    refreshing: "none",
    disabled: new Set(),
    questions: [],
  };
  /** Each refresh token with its user; one that was replaced is none any more. */
  const refreshTokens = new Map<string, string>();
  const refreshToken = (user: string): string => {
    const token = randomBytes(16).toString("base64url");
    refreshTokens.set(token, user);
    return token;
  };
  const isGood = (token: string): boolean => {
    const user = refreshTokens.get(token);
    return user !== undefined && !self.disabled.has(user);
  };
  let issuer = "";

  const idTokenOf = async (asked: URLSearchParams, user: string): Promise<string> => {
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: issuer,
      sub: user,
      aud: asked.get("client_id"),
      nonce: asked.get("nonce"),
      iat: now,
      exp: now + 300,
      auth_time: now,
      name: `${user} of the company`,
    };
    const { lies } = self;
    return new SignJWT((lies.claims?.(claims) ?? claims) as JWTPayload)
      .setProtectedHeader({ alg: "ES256", kid: current.kid, typ: "JWT", ...lies.header })
      .sign(lies.foreignKey ? foreign : current.key);
  };

  const redeem = async (form: URLSearchParams, authorization: string | undefined) => {
    self.redeemed.push({ form, authorization });
    const code = codes.get(form.get("code") ?? "");
    codes.delete(form.get("code") ?? "");
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    const fits =
      code?.asked.get("code_challenge") === challenge &&
      code.asked.get("redirect_uri") === form.get("redirect_uri");
    if (code === undefined || !fits) return { status: 400, body: { error: "invalid_grant" } };
    const idToken = await idTokenOf(code.asked, code.user);
    const refresh = self.refreshing === "none" ? {} : { refresh_token: refreshToken(code.user) };
    const answer = { access_token: code.user, token_type: "Bearer", id_token: idToken, ...refresh };
    return self.lies.answer?.(idToken) ?? { status: 200, body: answer };
  };

  /** What it says of a sign-in, by its refresh token. */
  const refresh = async (form: URLSearchParams) => {
    const token = form.get("refresh_token") ?? "";
    const user = refreshTokens.get(token) ?? "";
    if (!isGood(token)) return { status: 400, body: { error: "invalid_grant" } };
    const asked = new URLSearchParams({ client_id: CLIENT_AT_PROVIDER });
    const said = self.lies.idTokens && { id_token: await idTokenOf(asked, user) };
    const answer = { access_token: user, token_type: "bearer", ...said };
    if (self.refreshing !== "rotating") return { status: 200, body: answer };
    refreshTokens.delete(token);
    return { status: 200, body: { ...answer, refresh_token: refreshToken(user) } };
  };

  const signIn = (location: string, user = "alice"): string => {
    const asked = new URL(location).searchParams;
    const code = randomBytes(16).toString("base64url");
    codes.set(code, { asked, user });
    const back = new URL(asked.get("redirect_uri") ?? "");
    back.searchParams.set("code", code);
    back.searchParams.set("state", asked.get("state") ?? "");
    return back.href;
  };

  const server = createServer({ key: tls.keyPem, cert: tls.certPem }, async (request, response) => {
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (request.url === "/jwks") {
      const { jwk, kid } = current;
      return answer(200, { keys: [{ ...jwk, use: "sig", alg: "ES256", kid }] });
    }
    if (request.url === "/.well-known/openid-configuration") {
      return answer(200, {
        issuer,
        authorization_endpoint: `${issuer}/login`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        introspection_endpoint: `${issuer}/introspect`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["ES256"],
        ...(self.lies.userInfo && { userinfo_endpoint: `${issuer}/userinfo` }),
        ...self.lies.metadata,
      });
    }
    if (request.url === "/userinfo")
      return answer(200, self.lies.userInfo?.(String(request.headers.authorization).slice("Bearer ".length)));
    if (request.url?.startsWith("/login?")) {
      const link = (user: string): string =>
        `<a id="${user}" href="${signIn(`${issuer}${request.url}`, user).replaceAll("&", "&amp;")}">${user}</a>`;
      response.writeHead(200, { "content-type": "text/html" });
      return void response.end(`<!doctype html><title>Sign in</title>${link("alice")} ${link("bob")}`);
    }
    if (request.method === "POST") {
      let text = "";
      for await (const chunk of request) text += chunk;
      const form = new URLSearchParams(text);
      const isRefresh = form.get("grant_type") === "refresh_token";
      if (request.url === "/introspect" || isRefresh) {
        self.questions.push(isRefresh ? "refresh" : "introspection");
        if (self.lies.asked !== undefined) return self.lies.asked(response);
        const { status, body } = isRefresh
          ? await refresh(form)
          : { status: 200, body: { active: isGood(form.get("token") ?? "") } };
        return answer(status, body);
      }
      const { status, body } = await redeem(form, request.headers.authorization);
      return answer(status, body);
    }
    return answer(404, {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  issuer = `https://localhost:${(server.address() as AddressInfo).port}`;

  return Object.assign(self, {
    issuer,
    ca: authority.certPem,
    signIn,
    refreshToken,
    logoutToken: (claims: object = {}, header: object = {}) => {
      const iat = Math.floor(Date.now() / 1000);
      const events = { "http://schemas.openid.net/event/backchannel-logout": {} };
      const times = { iat, exp: iat + 120, jti: randomBytes(16).toString("base64url") };
      return new SignJWT({ iss: issuer, aud: CLIENT_AT_PROVIDER, ...times, events, ...claims })
        .setProtectedHeader({ alg: "ES256", kid: current.kid, typ: "logout+jwt", ...header })
        .sign(self.lies.foreignKey ? foreign : current.key);
    },
    userToken: (sub: string, aud: string, claims: object = {}) => {
      const iat = Math.floor(Date.now() / 1000);
      return new SignJWT({ iss: issuer, sub, aud, iat, exp: iat + 300, ...claims })
        .setProtectedHeader({ alg: "ES256", kid: current.kid, typ: "JWT" })
        .sign(current.key);
    },
    key: () => ({
      kid: current.kid,
      alg: "ES256",
      privateKey: createPrivateKey(current.pem),
      jwk: current.jwk,
    }),
    trusted: (extra: object = {}) => ({
      [issuer]: {
        keys: { url: `${issuer}/jwks`, ca: { file: "provider.pem" }, privateNetworks: LOOPBACK },
        acceptAs: ["id_token"],
        subjects: { prefix: "company:" },
        ...extra,
      },
    }),
    provider: (extra: object = {}) => ({
      issuer,
      clientId: CLIENT_AT_PROVIDER,
      idTokenAlg: "ES256",
      ca: { file: "provider.pem" },
      privateNetworks: LOOPBACK,
      ...extra,
    }),
    async rotate() {
      current = await makeKey();
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  });
}
