/** Connections over TLS to addresses that may be connected to, whose peer is judged before anything is sent to it. */
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { Agent, type RequestOptions } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { FETCH_ADDRESSES_MAX, KEPT_CONNECTIONS_MAX } from "../../limits/fetching.ts";
import type { Clock } from "../../ports.ts";
import { defined } from "../../result.ts";
import { mayConnect } from "../../settings/outbound.ts";
import type { Reach } from "../../settings/settings.ts";
import { mayUseNet, NO_NET } from "../process.ts";
import { FetchFailed, type FetchReason, late } from "./fetch-failed.ts";

/** Returns all addresses of a host name. */
export type Resolver = (hostname: string) => Promise<readonly LookupAddress[]>;

/**
 * Checks the peer's certificates (DER, leaf first); returns why the peer is refused, or undefined if it is accepted.
 */
export type Judge = (presented: readonly Uint8Array[]) => string | undefined;

const resolveBySystem: Resolver = (hostname) => lookup(hostname, { all: true });

export type CheckedAgentOptions = {
  resolver?: Resolver;
  /** Authenticates the peer instead of the public authorities and the host name, before the request is sent. */
  judge?: Judge;
  /** How long a connection is used again after it was opened; absent: for one request. */
  kept?: { ms: number; clock: Pick<Clock, "monotonicMs"> };
};

/** The platform passes on the signal of a request to no agent. */
export type CheckedRequest = RequestOptions & { deadline: AbortSignal };

/**
 * Opens connections to checked addresses, whose peer is judged before anything is sent. They are kept for
 * an origin that the operator configured alone: to any other, each request sees for itself where the name leads.
 */
export class CheckedAgent extends Agent {
  readonly #reach: Reach;
  readonly #options: CheckedAgentOptions;
  readonly #untilMs = new WeakMap<Duplex, number>();
  #isRetired = false;

  constructor(reach: Reach, options: CheckedAgentOptions = {}) {
    const { kept } = options;
    // The platform closes one that no request used for so long. It takes them from the front, where it passes over those
    // that were closed here.
    super(
      kept && {
        keepAlive: true,
        maxFreeSockets: KEPT_CONNECTIONS_MAX,
        timeout: kept.ms,
        scheduling: "fifo",
      },
    );
    this.#reach = reach;
    this.#options = options;
  }

  override createConnection(
    { host, port, deadline }: CheckedRequest,
    opened: (fault: Error | null, socket: Duplex) => void,
  ): undefined {
    this.#open(host ?? "", Number(port), deadline).then(
      (socket) => {
        const { kept } = this.#options;
        if (kept !== undefined) this.#untilMs.set(socket, this.nowMs() + kept.ms);
        opened(null, socket);
      },
      // The platform takes no socket beside a fault.
      (fault) => opened(fault, undefined as never),
    );
  }

  async #open(host: string, port: number, deadline: AbortSignal): Promise<TLSSocket> {
    const { resolver = resolveBySystem, judge } = this.#options;
    const addresses = await resolve(host, this.#reach.privateNetworks, resolver);
    // The name was resolved after the deadline, so no connection is opened.
    if (deadline.aborted) throw late();
    return connectTo({ host, port, addresses, deadline }, this.#reach, judge);
  }

  /** By the clock of what is kept. */
  nowMs(): number {
    return this.#options.kept?.clock.monotonicMs() ?? 0;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    // False where the server said that it closes the connection before.
    return this.#mayKeep(socket) && (super.keepSocketAlive(socket) as unknown as boolean);
  }

  /** Closes the connections that were opened too long ago, before a request would take one of them. */
  closeOld(): void {
    for (const socket of Object.values(this.freeSockets).flat()) {
      if (socket !== undefined && !this.#mayKeep(socket)) socket.destroy();
    }
  }

  /** Closes the connections that no request uses, and each of the others after its request. */
  retire(): void {
    this.#isRetired = true;
    this.closeOld();
  }

  readonly #mayKeep = (socket: Duplex): boolean =>
    !this.#isRetired && this.nowMs() < (this.#untilMs.get(socket) ?? 0);
}

/** B8725-3.10-2: resolves the name once, and refuses it if any of its addresses may not be connected to. */
async function resolve(
  host: string,
  networks: readonly string[],
  resolver: Resolver,
): Promise<readonly LookupAddress[]> {
  if (!mayUseNet()) throw new FetchFailed("connection_failed", NO_NET);
  const family = isIP(host);
  const answers = family === 0 ? await resolver(host).catch(() => []) : [{ address: host, family }];
  if (answers.length === 0) throw new FetchFailed("name_unresolved", "the name does not resolve");
  if (!answers.every(({ address }) => mayConnect(address, networks))) {
    throw new FetchFailed("address_refused", "the name has an address that is not allowed");
  }
  // The owner of a name can list any number of addresses, and each would be tried.
  return answers.slice(0, FETCH_ADDRESSES_MAX);
}

type Place = {
  /** The name that the certificate must have. */
  host: string;
  port: number;
  addresses: readonly LookupAddress[];
  deadline: AbortSignal;
};

function connectTo(
  { host, port, addresses, deadline }: Place,
  { ca, privateNetworks }: Reach,
  judge: Judge | undefined,
): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  // Connects to the checked addresses only, because a second resolution could return others. The first one to
  // answer is used.
  const checked: LookupFunction = (_hostname, { all }, callback) =>
    all ? callback(null, [...addresses]) : callback(null, addresses[0]?.address ?? "", addresses[0]?.family);
  const options = defined<ConnectionOptions>({
    host,
    servername: isIP(host) === 0 ? host : undefined,
    lookup: checked,
    port,
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    // RFC8414-6.1-2, RFC7515-8-v1: certificates are verified, even if an environment variable turns that off.
    rejectUnauthorized: judge === undefined,
    // SFD-7.2-1: with a judge, no public authority is trusted; without one, only the authorities decide.
    ca: judge === undefined ? ca : [],
  });
  const socket = connect(options);
  const fail = (reason: FetchReason, message: string): void => {
    reject(new FetchFailed(reason, message));
    socket.destroy();
  };
  const onDeadline = (): void => void socket.destroy();
  deadline.addEventListener("abort", onDeadline, { once: true });
  let isConnected = false;
  socket.on("error", ({ code = "" }: NodeJS.ErrnoException) => {
    const reason = isConnected ? (TLS_REASONS.get(code) ?? "tls_failed") : "connection_failed";
    fail(reason, code || "the connection failed");
  });
  socket.once("connect", () => {
    isConnected = true;
    const peer = socket.remoteAddress?.replace(/^::ffff:(?=[0-9.]+$)/, "") ?? "";
    if (!mayConnect(peer, privateNetworks)) {
      fail("peer_refused", "the peer has an address that is not allowed");
    }
  });
  socket.once("secureConnect", () => {
    const objection = judge?.(presented(socket));
    if (objection !== undefined) return fail("endpoint_refused", objection);
    deadline.removeEventListener("abort", onDeadline);
    resolve(socket);
  });
  return promise;
}

const TLS_REASONS: ReadonlyMap<string, FetchReason> = new Map([
  ["CERT_HAS_EXPIRED", "certificate_expired"],
  ["CERT_NOT_YET_VALID", "certificate_not_yet_valid"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "certificate_name_wrong"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "certificate_untrusted"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "certificate_untrusted"],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "certificate_untrusted"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "certificate_untrusted"],
]);

/** The certificates as the peer sent them, leaf first; the platform's own verification of them is not used. */
function presented(socket: TLSSocket): readonly Uint8Array[] {
  const chain: Uint8Array[] = [];
  let certificate = socket.getPeerX509Certificate();
  while (certificate !== undefined) {
    chain.push(certificate.raw);
    certificate = certificate.issuerCertificate;
  }
  return chain;
}
