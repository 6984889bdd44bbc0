/**
 * The way to a PostgreSQL server: a socket, and TLS on it, before the first message. Both are made here and not by the
 * driver, which takes away their listeners when it begins TLS, so that neither an error nor an end would be noticed.
 */
import { once } from "node:events";
import { connect, isIP, type Socket } from "node:net";
import { type ConnectionOptions, connect as secure } from "node:tls";
import { defined } from "../../../result.ts";
import type { DatabaseTls } from "../../../settings/settings.ts";

/** A host and port, or the path of a Unix socket. */
export type ServerAddress = { host: string; port: number } | { path: string };

/** SSLRequest of the protocol: its length, and the code 80877103. */
const TLS_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
const TLS_FOLLOWS = 0x53;
const KEEP_ALIVE_MS = 60_000;

/** Aborted at any time, `cut` also ends the socket; it is aborted when the server hangs up. Rejects with its reason. */
export async function openSocket(
  address: ServerAddress,
  tls: DatabaseTls | undefined,
  cut: AbortController,
): Promise<Socket> {
  const { signal } = cut;
  try {
    const raw = watched(connect({ ...address, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS }), cut);
    await once(raw, "connect", { signal });
    // A Unix socket does not leave the machine.
    if (tls === undefined || "path" in address) return raw;
    raw.write(TLS_REQUEST);
    const [answer]: Buffer[] = await once(raw, "data", { signal });
    // One byte: what comes unencrypted after it must not be read as if it had come encrypted.
    if (answer?.length !== 1) throw failed("the server answered out of turn", "NO_TLS");
    if (answer[0] !== TLS_FOLLOWS) {
      if (tls.mode === "offered") return raw;
      throw failed("the server has no TLS", "NO_TLS");
    }
    const { host } = address;
    const options = defined<ConnectionOptions>({
      socket: raw,
      // An address is looked for in the certificate too, but not named to the server.
      host,
      servername: isIP(host) === 0 ? host : undefined,
      ca: tls.ca,
      rejectUnauthorized: tls.mode === "verified",
    });
    const encrypted = watched(secure(options), cut);
    await once(encrypted, "secureConnect", { signal });
    return encrypted;
  } catch (error) {
    const reason = signal.aborted ? signal.reason : error;
    cut.abort(reason);
    throw reason;
  }
}

/** From now on no error of the socket is missed, and it ends with the signal, which its end aborts. */
function watched<S extends Socket>(socket: S, cut: AbortController): S {
  socket.on("error", (error) => cut.abort(error));
  socket.once("close", () => cut.abort(failed("the server hung up", "ECONNRESET")));
  cut.signal.addEventListener("abort", () => socket.destroy(), { once: true });
  return socket;
}

export const failed = (message: string, code: string): Error => Object.assign(new Error(message), { code });
