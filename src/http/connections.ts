/** Counts the connections of one listener, in all and by source, and knows what each is busy with. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import ipaddr from "ipaddr.js";
import { LINGER_MS } from "../limits/connections.ts";
import { networkOf } from "../spec/rfc4291.ts";
import type { Peer } from "./handler.ts";
import { meterInput } from "./intake.ts";
import { leafOf, presented } from "./message.ts";
import type { RequestTrace } from "./trace.ts";

/** What a peer showed in its handshake. */
export type HandshakeCertificates = Pick<Peer, "certificates" | "leaf">;

export type Connection = {
  readonly address: string;
  readonly startMs: number;
  certificates: Peer["certificates"] | undefined;
  leaf: Peer["leaf"];
  requests: number;
  /** Requests that were begun and not yet answered to the end. */
  open: number;
  /** The last request that was begun, while its body is still coming in. */
  reading: RequestTrace | undefined;
  /** The last request that was begun. */
  latest: { readonly complete: boolean } | undefined;
  /** Begins the request that came in one piece with the end of the one before, once that is answered. */
  next: (() => void) | undefined;
  /** Passes waiting input on to the parser, unless a request is at work. */
  proceed: (() => void) | undefined;
  /** Refuses what the parser gave up on, once the requests before it are answered. */
  ending: (() => void) | undefined;
  /** The last request of the connection was taken; what follows is ignored. */
  last: boolean;
  /** A raw answer was written, so no other one will be. */
  refused: boolean;
};

export type Connections = {
  /** Whether each answer ends its connection. */
  readonly draining: boolean;
  /** Whether the listener is shutting down. */
  readonly ended: boolean;
  /** Counts a new connection; it is cut if its source has too many. */
  accept(socket: Socket): void;
  /** Takes up a connection whose handshake is done; after the end it has a while for one request. */
  open(socket: TLSSocket): void;
  /** Undefined before the end of the handshake and after the end of the connection. */
  find(socket: Duplex): Connection | undefined;
  /** Takes up further connections; from now on each ends with its next answer. */
  drain(): void;
  /** Ends the connections that wait for a further request; the others end with their answer, or soon without a request. */
  end(): void;
  cutAll(): void;
};

/** `isProven` tells whether a peer that showed these certificates may have any number of connections. */
export function makeConnections(
  limit: { connectionsPerSourceMax: number },
  isProven: (handshake: HandshakeCertificates) => boolean = () => false,
): Connections {
  const sockets = makeSockets(limit);
  const connections = new Map<Duplex, Connection>();
  let draining = false;
  let ended = false;
  const hasProven = (socket: TLSSocket): boolean => {
    try {
      const certificates = presented(socket);
      return isProven({ certificates, leaf: leafOf(certificates) });
    } catch {
      // The fault answers no request, because there is none yet; the connection stays counted.
      return false;
    }
  };
  return {
    get draining() {
      return draining;
    },
    get ended() {
      return ended;
    },
    accept: sockets.accept,
    open(socket) {
      // RFC8705-2-2: a resumed session has shown no certificate.
      if (socket.isSessionReused()) {
        socket.destroy();
        return;
      }
      const connection = connectionOf(socket);
      connections.set(socket, connection);
      if (hasProven(socket)) sockets.release(socket);
      socket.once("close", () => connections.delete(socket));
      if (ended) linger(socket, connection);
    },
    find: (socket) => connections.get(socket),
    drain() {
      draining = true;
    },
    end() {
      draining = true;
      ended = true;
      for (const [socket, connection] of connections) {
        if (connection.open > 0) continue;
        if (connection.requests > 0) socket.destroy();
        else linger(socket, connection);
      }
    },
    cutAll: sockets.cutAll,
  };
}

/** The first request of a new connection may be on its way when the listener ends; its answer ends the connection. */
function linger(socket: Duplex, connection: Connection): void {
  setTimeout(() => {
    if (connection.open === 0) socket.destroy();
  }, LINGER_MS).unref();
}

/** All sockets, and how many each source has that are counted. */
function makeSockets(limit: { connectionsPerSourceMax: number }) {
  const sockets = new Set<Socket>();
  const sources = new Map<string, number>();
  /** A connection is known by address and port, which a TLS socket shares with the socket below it. */
  const counted = new Map<string, string>();
  const release = (socket: Socket, peer = peerOf(socket)): void => {
    const source = counted.get(peer);
    if (source === undefined) return;
    counted.delete(peer);
    const left = (sources.get(source) ?? 1) - 1;
    if (left === 0) sources.delete(source);
    else sources.set(source, left);
  };
  return {
    accept(socket: Socket): void {
      const source = networkOf(addressOf(socket.remoteAddress));
      const count = (sources.get(source) ?? 0) + 1;
      if (count > limit.connectionsPerSourceMax) {
        socket.destroy();
        return;
      }
      sources.set(source, count);
      sockets.add(socket);
      // Once it is closed, a socket has no address.
      const peer = peerOf(socket);
      counted.set(peer, source);
      socket.once("close", () => {
        sockets.delete(socket);
        release(socket, peer);
      });
    },
    /** It counts no more for its source. */
    release: (socket: Socket): void => release(socket),
    cutAll(): void {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function connectionOf(socket: TLSSocket): Connection {
  const connection: Connection = {
    address: addressOf(socket.remoteAddress),
    startMs: performance.now(),
    certificates: undefined,
    leaf: undefined,
    requests: 0,
    open: 0,
    reading: undefined,
    latest: undefined,
    next: undefined,
    proceed: undefined,
    ending: undefined,
    last: false,
    refused: false,
  };
  connection.proceed = meterInput(socket, connection);
  return connection;
}

const peerOf = ({ remoteAddress = "", remotePort = 0 }: Socket): string => `${remoteAddress} ${remotePort}`;

/** The address `::ffff:192.0.2.1` is that of 192.0.2.1. */
function addressOf(remote: string | undefined): string {
  return remote !== undefined && ipaddr.isValid(remote) ? ipaddr.process(remote).toString() : "";
}
