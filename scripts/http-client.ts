/** The HTTPS client of demo and tests: one authority, plain forms, JSON back. */
import { request } from "node:https";

export type Answer = {
  status: number;
  headers: Record<string, string>;
  body: Record<string, unknown>;
  text: string;
};

export type Sent = {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** PEM of the authority to trust. */
  ca: string;
  /** A client certificate, PEM. */
  key?: string;
  cert?: string;
  /** Where to connect, when the URL's own name leads elsewhere. */
  connect?: { host: string; port: number };
};

export function send(
  url: string,
  { method = "GET", headers = {}, body, ca, key, cert, connect }: Sent,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { hostname, port, pathname, search, host } = new URL(url);
  const outgoing = request({
    method,
    host: connect?.host ?? hostname,
    port: connect?.port ?? (port || 443),
    path: `${pathname}${search}`,
    servername: hostname,
    headers: { host, ...headers, ...(body !== undefined && { "content-length": Buffer.byteLength(body) }) },
    agent: false,
    ca,
    ...(key !== undefined && { key }),
    ...(cert !== undefined && { cert }),
  });
  outgoing.on("error", reject);
  outgoing.on("response", async (response) => {
    const text = (await response.toArray()).join("");
    const fields = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
    resolve({
      status: response.statusCode ?? 0,
      headers: Object.fromEntries(fields),
      body: text !== "" && /[/+]json/.test(response.headers["content-type"] ?? "") ? JSON.parse(text) : {},
      text,
    });
  });
  outgoing.end(body);
  return promise;
}

export type Form = Record<string, string | readonly string[]>;

/** POST of an `application/x-www-form-urlencoded` body; an array sends its parameter once for each value. */
export function postForm(url: string, form: Form | string, options: Sent): Promise<Answer> {
  const headers = { "content-type": "application/x-www-form-urlencoded", ...options.headers };
  return send(url, {
    ...options,
    method: "POST",
    headers,
    body: typeof form === "string" ? form : encode(form),
  });
}

function encode(form: Form): string {
  const pairs = Object.entries(form).flatMap(([name, value]) =>
    [value].flat().map((one) => [name, String(one)]),
  );
  return new URLSearchParams(pairs).toString();
}

/** RFC 6749 2.3.1: each half form-encoded, then base64. */
export function basic(clientId: string, secret: string): string {
  const half = (text: string): string => encode({ "": text }).slice(1);
  return `Basic ${Buffer.from(`${half(clientId)}:${half(secret)}`).toString("base64")}`;
}

/** The claims of a JWT, for showing; nothing is verified. */
export function claimsOf(jwt: unknown): Record<string, unknown> {
  const part = typeof jwt === "string" ? jwt.split(".")[1] : undefined;
  return JSON.parse(Buffer.from(part ?? "", "base64url").toString("utf8"));
}
