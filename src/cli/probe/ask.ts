/** The requests of `mandate probe`: one connection each, redirects and refusals as they come, one deadline. */
import { type RequestOptions, request } from "node:https";
import {
  connect,
  createSecureContext,
  getCACertificates,
  type SecureContext,
  type SecureVersion,
} from "node:tls";
import { PROBE_BYTES_MAX, PROBE_TIMEOUT_MS } from "../../limits/process.ts";
import type { Answer, Request } from "./row.ts";

/** How the server is reached: whom to trust, and where it is if not where its name says. */
export type Reached = { secureContext: SecureContext; host: string | undefined; port: number | undefined };

export const trusting = (ca: string | undefined): SecureContext =>
  createSecureContext({ ca: [...getCACertificates("default"), ...(ca === undefined ? [] : [ca])] });

const placeOf = (url: URL, { host, port }: Reached) => ({
  host: host ?? url.hostname.replace(/^\[(.*)\]$/, "$1"),
  port: port ?? (Number(url.port) || 443),
  servername: url.hostname,
});

const lengthOf = (body?: string) => (body === undefined ? {} : { "content-length": Buffer.byteLength(body) });

/** Rejects where there is no answer. */
export function ask({ method, url, headers = {}, body }: Request, reached: Reached): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const at = new URL(url);
  const options: RequestOptions & { secureContext: SecureContext } = {
    ...placeOf(at, reached),
    secureContext: reached.secureContext,
    method,
    path: `${at.pathname}${at.search}`,
    headers: { host: at.host, ...headers, ...lengthOf(body) },
    agent: false,
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  };
  const outgoing = request(options);
  outgoing.on("error", reject);
  outgoing.on("response", async (response) => {
    let text = "";
    try {
      for await (const part of response.setEncoding("utf8")) {
        text += part;
        if (text.length > PROBE_BYTES_MAX) break;
      }
    } catch (fault) {
      return reject(fault);
    }
    const fields = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
    resolve({ status: response.statusCode ?? 0, headers: Object.fromEntries(fields), text });
  });
  outgoing.end(body);
  return promise;
}

/** Whether the server agrees to this version of TLS and no later one; undefined where that cannot be found out here. */
export function agreesTo(
  version: SecureVersion,
  issuer: string,
  reached: Reached,
): Promise<boolean | undefined> {
  const { promise, resolve } = Promise.withResolvers<boolean | undefined>();
  // Old versions are closed here too, unless they are opened by name. Nothing is sent, so that no certificate has to fit.
  const old = { minVersion: version, maxVersion: version, ciphers: "DEFAULT:@SECLEVEL=0" };
  const socket = connect({ ...placeOf(new URL(issuer), reached), ...old, rejectUnauthorized: false });
  const end = (agreed: boolean | undefined) => {
    socket.destroy();
    resolve(agreed);
  };
  socket.setTimeout(PROBE_TIMEOUT_MS, () => end(undefined));
  socket.once("secureConnect", () => end(true));
  socket.once("error", (fault: NodeJS.ErrnoException) => {
    const isRefused = /ALERT|ECONNRESET|WRONG_VERSION|UNSUPPORTED_PROTOCOL|socket disconnected/.test(
      `${fault.code} ${fault.message}`,
    );
    end(isRefused ? false : undefined);
  });
  return promise;
}
