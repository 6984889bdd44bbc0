/**
 * HTTPS for handlers: the listener with its limits, node:https on one side, `Handler` on the other.
 * RFC 9110 and RFC 9112, HTTP: https://www.rfc-editor.org/rfc/rfc9112.html
 * RFC 8705, 6.1 the listener: https://www.rfc-editor.org/rfc/rfc8705.html
 *
 * What reaches a handler has a bounded head, a whole body that is not longer than its limit, and a path that the
 * URL parser gave back byte for byte.
 */
import { createServer, type Server as HttpsServer } from "node:https";
import net from "node:net";
import * as limits from "../limits/connections.ts";
import { type Dress, REFUSALS } from "./answers.ts";
import { type HandshakeCertificates, makeConnections } from "./connections.ts";
import type { Handler } from "./handler.ts";
import { listen } from "./listen.ts";
import type { LogEntry } from "./log.ts";
import { refusalOf, refuseRaw } from "./raw-refusal.ts";
import { makeResponder } from "./responder.ts";
import { secureContext } from "./tls.ts";

export type ServeOptions = {
  host: string;
  port: number;
  /** Whether other processes may listen on the same port. */
  reusePort?: boolean;
  /** The private key in PEM. */
  key: string;
  /** The certificate in PEM, with the intermediates. */
  cert: string;
  /** The base of every request's URL; `Host` and `Forwarded` do not change it. */
  origin: string;
  /** Whether clients are asked for a certificate; false where another listener does that. */
  clientCertificates?: boolean;
  /** Whether a peer that showed these certificates is not bound by the cap on connections of one source. */
  isProven?: (handshake: HandshakeCertificates) => boolean;
  log: (entry: LogEntry) => void;
  /** Called for each connection that is not taken up, because there are as many as may be, or no file can be opened. */
  onRefused?: (why: "limit" | "files") => void;
  /** The form of an answer that the handler did not make; by default the answer stays as it is. */
  dress?: Dress;
  limits?: Partial<typeof LIMITS>;
};

export type Server = {
  readonly address: string;
  readonly port: number;
  /**
   * Sets the certificate for new connections, while open ones keep theirs. Returns whether it is another one; throws
   * and changes nothing if key and certificate do not match.
   */
  replaceCertificate(key: string, cert: string): boolean;
  /** Serves on; each answer says that it ends its connection, and ends it. */
  drain(): void;
  /** Accepts no more connections, finishes requests that have begun, and cuts those that are not finished in time. */
  shutdown(): Promise<void>;
};

export const LIMITS = {
  headerBytesMax: limits.HEADER_BYTES_MAX,
  headersMax: limits.HEADERS_MAX,
  bodyBytesMax: limits.BODY_BYTES_MAX,
  connectionsMax: limits.CONNECTIONS_MAX,
  connectionsPerSourceMax: limits.CONNECTIONS_PER_SOURCE_MAX,
  requestsPerConnectionMax: limits.REQUESTS_PER_CONNECTION_MAX,
  connectionAgeMaxMs: limits.CONNECTION_AGE_MAX_MS,
  handshakeTimeoutMs: limits.HANDSHAKE_TIMEOUT_MS,
  headersTimeoutMs: limits.HEADERS_TIMEOUT_MS,
  requestTimeoutMs: limits.REQUEST_TIMEOUT_MS,
  answerTimeoutMs: limits.ANSWER_TIMEOUT_MS,
  idleTimeoutMs: limits.IDLE_TIMEOUT_MS,
  shutdownTimeoutMs: limits.SHUTDOWN_TIMEOUT_MS,
  checkIntervalMs: limits.CHECK_INTERVAL_MS,
};

export async function serve(options: ServeOptions, handler: Handler): Promise<Server> {
  const { log } = options;
  const limit = { ...LIMITS, ...options.limits };
  const connections = makeConnections(limit, options.isProven);
  const respond = makeResponder({
    handler,
    origin: new URL(options.origin).origin,
    connections,
    log,
    dress: options.dress ?? ((_, answer) => answer),
    limit,
  });
  const server = makeServer(options, limit);
  server.on("connection", connections.accept);
  server.on("secureConnection", connections.open);
  server.on("request", (request, response) => void respond(request, response, "none"));
  server.on("checkContinue", (request, response) => void respond(request, response, "continue"));
  server.on("checkExpectation", (request, response) => void respond(request, response, "other"));
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const refusal = refusalOf(error.code ?? "");
    if (refusal === undefined) socket.destroy();
    else refuseRaw(socket, connections.find(socket), refusal, log);
  });
  server.on("connect", (_request, socket) => {
    socket.on("error", () => socket.destroy());
    refuseRaw(socket, connections.find(socket), REFUSALS.method, log);
  });
  const bound = await listen(server, options);
  server.on("drop", () => options.onRefused?.("limit"));
  // Without this listener a connection that cannot be accepted would end the process.
  server.on("error", () => options.onRefused?.("files"));

  const shutdown = async (): Promise<void> => {
    // This is not https.Server.close, which would cut a connection whose answer is not yet sent completely.
    const closed = new Promise<void>((resolve) => {
      net.Server.prototype.close.call(server, () => resolve());
    });
    connections.end();
    const cut = setTimeout(connections.cutAll, limit.shutdownTimeoutMs);
    await closed;
    clearTimeout(cut);
    // This stops Node's own timers.
    server.close();
  };
  let stopping: Promise<void> | undefined;
  let inForce = [options.key, options.cert].join();

  return {
    address: bound.address,
    port: bound.port,
    replaceCertificate(key, cert) {
      const next = [key, cert].join();
      if (next === inForce) return false;
      server.setSecureContext(secureContext(key, cert));
      inForce = next;
      return true;
    },
    drain: connections.drain,
    shutdown() {
      stopping ??= shutdown();
      return stopping;
    },
  };
}

function makeServer({ key, cert, clientCertificates }: ServeOptions, limit: typeof LIMITS): HttpsServer {
  const server = createServer({
    ...secureContext(key, cert),
    // RFC8705-6.1-1, RFC8705-6.1-2: a certificate is asked for and not required, and every one is accepted here.
    requestCert: clientCertificates ?? true,
    rejectUnauthorized: false,
    handshakeTimeout: limit.handshakeTimeoutMs,
    maxHeaderSize: limit.headerBytesMax,
    headersTimeout: limit.headersTimeoutMs,
    requestTimeout: limit.requestTimeoutMs,
    connectionsCheckingInterval: limit.checkIntervalMs,
    keepAliveTimeout: limit.idleTimeoutMs,
    keepAliveTimeoutBuffer: 0,
    // Node's own check is off, because its answer would have no body; refuseHead counts the Host fields.
    requireHostHeader: false,
  });
  // The timers above start with a request; this one also ends a connection that is silent after the handshake.
  server.timeout = limit.idleTimeoutMs;
  server.maxConnections = limit.connectionsMax;
  // Node drops fields beyond this number silently; one more than allowed is let through, so that refuseHead sees one
  // too many.
  server.maxHeadersCount = limit.headersMax + 1;
  return server;
}
