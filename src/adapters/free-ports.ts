/** Whether a listener could be opened now, and what is there otherwise; what is opened for that is closed at once. */
import { once } from "node:events";
import { createConnection, createServer } from "node:net";
import { connect } from "node:tls";
import { HOLDER_TIMEOUT_MS } from "../limits/process.ts";

const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EACCES: "this user may not open a port below 1024: give it CAP_NET_BIND_SERVICE",
  EADDRNOTAVAIL: "this machine does not have that address",
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "the name of the host cannot be looked up now",
  EAFNOSUPPORT: "this machine has no addresses of that family",
};

/** What the code of a listener that cannot be opened means. */
export const describeListenFault = (code: string): string =>
  LISTEN_FAULTS[code] ?? `the system answers ${code}`;

/** Undefined if the port is free, else the code of the platform, such as EADDRINUSE. */
export async function whyNotFree({
  host,
  port,
  reusePort = false,
}: {
  host: string;
  port: number;
  reusePort?: boolean;
}): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen({ port, host, reusePort });
    await once(server, "listening");
    return undefined;
  } catch (fault) {
    return fault instanceof Error && "code" in fault ? String(fault.code) : "no reason given";
  } finally {
    if (server.listening) {
      server.close();
      await once(server, "close");
    }
  }
}

/** The certificate (DER) that the process at this place shows; undefined where it shows none in time. */
export async function shownAt(place: { host: string; port: number }): Promise<Uint8Array | undefined> {
  // What it shows is only compared, and nothing is sent to it.
  const socket = connect({ ...local(place), rejectUnauthorized: false, timeout: HOLDER_TIMEOUT_MS });
  try {
    socket.once("timeout", () => socket.destroy());
    await Promise.race([once(socket, "secureConnect"), once(socket, "close")]);
    return socket.getPeerX509Certificate()?.raw;
  } catch {
    return undefined;
  } finally {
    socket.destroy();
  }
}

/** Whether the process at this place shows metrics of this server. */
export async function countsAt(place: { host: string; port: number }): Promise<boolean> {
  const socket = createConnection({ ...local(place), timeout: HOLDER_TIMEOUT_MS });
  try {
    socket.once("timeout", () => socket.destroy());
    socket.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    const [first] = await Promise.race([once(socket, "data"), once(socket, "close")]);
    return String(first).includes("\n# HELP mandate_");
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** A listener on every address is reached on loopback. */
const local = ({ host, port }: { host: string; port: number }): { host: string; port: number } => ({
  host:
    new Map([
      ["0.0.0.0", "127.0.0.1"],
      ["::", "::1"],
    ]).get(host) ?? host,
  port,
});
