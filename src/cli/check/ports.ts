/** The ports of the listeners: free, in use by this server, or in use by another process. */
import { X509Certificate } from "node:crypto";
import { countsAt, describeListenFault, shownAt, whyNotFree } from "../../adapters/free-ports.ts";
import type { Config } from "../../config/config.ts";
import type { Finding } from "./finding.ts";

/** Whether the listeners could be opened; beside a server that runs, its ports are in use. */
export async function portsOf({ fixed }: Config): Promise<readonly Finding[]> {
  const { listen, mtls, proxy, operations } = fixed;
  const found = Object.entries({ listen, mtls, proxy, operations }).map(
    ([name, at]) => at && portOf(name, at),
  );
  return (await Promise.all(found)).filter((one) => one !== undefined);
}

type Place = { host: string; port: number; reusePort?: boolean; cert?: string };

async function portOf(name: string, at: Place): Promise<Finding> {
  const { host, port } = at;
  const where = `${name}.port`;
  const why = port === 0 ? undefined : await whyNotFree(at);
  if (why === undefined) return { level: "ok", where, says: `${host}:${port} is free` };
  if (why !== "EADDRINUSE") {
    const says = `${host}:${port} cannot be listened on, because ${describeListenFault(why)}: change "${name}.host" or "${name}.port"`;
    return { level: "error", where, says };
  }
  if (await isOurs(at)) return { level: "ok", where, says: `${host}:${port} is in use by this server` };
  const shows = at.cert === undefined ? "shows no metrics of this server" : "does not show this certificate";
  const says = `${host}:${port} is in use by a process that ${shows}: stop that process, or change "${where}"`;
  return { level: "error", where, says };
}

/** A running server shows the certificate of the configuration, and takes a renewed one within seconds. */
async function isOurs({ cert, ...at }: Place): Promise<boolean> {
  if (cert === undefined) return countsAt(at);
  const shown = await shownAt(at);
  return shown !== undefined && new X509Certificate(cert).raw.equals(shown);
}
