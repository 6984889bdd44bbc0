/** The listeners of one server: health and metrics for the operator's tools, and the endpoints by HTTPS. */
import { describeListenFault } from "../adapters/free-ports.ts";
import { app, dressAnswers } from "../app.ts";
import type { Config, Listener } from "../config/config.ts";
import type { HandshakeCertificates } from "../http/connections.ts";
import type { Handler } from "../http/handler.ts";
import type { LogEntry } from "../http/log.ts";
import { type Operations, serveOperations, type Watch } from "../http/operations.ts";
import { behindProxy, isProxy, type TrustedProxy } from "../http/proxy.ts";
import { type ServeOptions, type Server, serve } from "../http/serve.ts";
import { endOfCertificate } from "../http/tls.ts";
import {
  CONNECTIONS_PER_SOURCE_MAX,
  PROXY_HEADER_BYTES_MAX,
  PROXY_UNPROVEN_PER_SOURCE_MAX,
} from "../limits/connections.ts";
import { defined } from "../result.ts";
import { connectionsOfSource, fitConnections, type Refusal, tellRefusals } from "./capacity.ts";
import type { Log } from "./log.ts";
import { StartRefused } from "./refused.ts";
import type { Service } from "./service.ts";

export type Listeners = {
  /** The address of the main listener. */
  readonly address: string;
  readonly port: number;
  /** Takes renewed certificates into use, for new connections. */
  renew(next: Config["fixed"]): void;
  /** Serves on, and ends each connection with its next answer, so that clients go elsewhere. */
  drain(): void;
  /** Accepts no more requests, and finishes those that have begun. */
  shutdown(): Promise<void>;
};

/** The listener that is opened before the others and closed after them; undefined if there is none. */
export async function openOperations(
  { operations }: Config["fixed"],
  { counters, watch }: Pick<Service, "counters"> & { watch: Watch },
  configFile: string,
  log: Log,
): Promise<Operations | undefined> {
  if (operations === undefined) return undefined;
  const opening = serveOperations(operations, watch, counters);
  const opened = await bindAt("operations", operations, configFile, opening);
  const { address, port } = opened;
  const message = `Health and metrics are at http://${address}:${port}`;
  log.tell({ level: "info", event: "listening", message, listener: "operations", address, port });
  return opened;
}

export async function openListeners(
  fixed: Config["fixed"],
  { ports, people, counters }: Service,
  configFile: string,
  log: Log,
): Promise<Listeners> {
  const { listen, mtls, signsIn, proxy } = fixed;
  const handler = app(ports, people);
  const dress = dressAnswers(ports, people);
  const { issuer, mtlsOrigin = issuer } = ports.settings();
  const onRequest = (entry: LogEntry): void => {
    counters.request(entry);
    log.request(entry);
  };
  const connectionsMax = fitConnections(fixed, log);
  const tell = tellRefusals(log, ports.clock);
  const open = (name: string, at: Listener, serving: Handler, rest: Partial<ServeOptions> = {}) => {
    const { connectionsPerSourceMax: most = CONNECTIONS_PER_SOURCE_MAX } = rest.limits ?? {};
    const connectionsPerSourceMax = connectionsOfSource(connectionsMax, most);
    const limits = { ...rest.limits, connectionsMax, connectionsPerSourceMax };
    const onRefused = (why: Refusal): void => {
      counters.refused(name, why);
      tell(name, why);
    };
    const options = { ...at, origin: issuer, ...rest, limits, log: onRequest, dress, onRefused };
    return bindAt(name, at, configFile, serve(options, serving));
  };

  const further: [listener: "mtls" | "proxy", server: Server][] = [];
  // RFC8705-5-1: with a listener for certificates, only its clients are asked for one.
  if (mtls !== undefined) {
    // RFC9449-4.3-9: its requests are for its own origin.
    further.push(["mtls", await open("mtls", mtls, handler, { origin: mtlsOrigin })]);
  }
  if (proxy !== undefined) {
    const { serving, ...rest } = servingProxy(proxy, { ports, counters }, handler, log);
    further.push(["proxy", await open("proxy", proxy, serving, rest)]);
  }
  for (const [listener, { address, port }] of further) {
    const message = `Mandate also listens on ${address}:${port}`;
    log.tell({ level: "info", event: "listening", message, listener, address, port });
  }
  const main = await open("listen", listen, handler, {
    clientCertificates: mtls === undefined && !signsIn,
  });
  const all = [...further, ["listen", main] as const];
  return {
    address: main.address,
    port: main.port,
    renew(next) {
      for (const [listener, server] of all) renew(listener, server, next[listener], log);
    },
    drain() {
      for (const [, server] of all) server.drain();
    },
    async shutdown() {
      await Promise.all(all.map(([, server]) => server.shutdown()));
    },
  };
}

function servingProxy(
  { ca: anchors, name, clientAddress, form, field, intermediates }: NonNullable<Config["fixed"]["proxy"]>,
  { ports, counters }: Pick<Service, "ports" | "counters">,
  handler: Handler,
  log: Log,
): Pick<ServeOptions, "limits" | "isProven"> & { serving: Handler } {
  const subject = { parameter: "tls_client_auth_san_dns", name } as const;
  const trusted = defined<TrustedProxy>({ anchors, subject, clientAddress, form, field, intermediates });
  return {
    limits: {
      headerBytesMax: PROXY_HEADER_BYTES_MAX,
      connectionsPerSourceMax: PROXY_UNPROVEN_PER_SOURCE_MAX,
    },
    isProven: (handshake: HandshakeCertificates): boolean => isProxy(ports, trusted, handshake),
    serving: behindProxy(ports, trusted, handler, {
      unread: tellOnce(log, trusted),
      otherField: counters.proxyField,
    }),
  };
}

/** This is told once, since every request behind the proxy may be of that kind. */
function tellOnce(log: Log, { clientAddress }: TrustedProxy): () => void {
  let told = false;
  return () => {
    if (told) return;
    told = true;
    const message = `The proxy sent a request without a ${clientAddress} field that tells its client's address: such clients share the proxy's own address`;
    log.tell({ level: "warning", event: "client_address_unread", message });
  };
}

/** A listener that is no longer configured serves until the restart, with the certificate that it has. */
function renew(listener: string, server: Server, next: Listener | undefined, log: Log): void {
  if (next === undefined || !server.replaceCertificate(next.key, next.cert)) return;
  const message = `${listener} has a new certificate, valid until ${endOfCertificate(next.cert)}`;
  log.tell({ level: "info", event: "certificate_renewed", message, listener });
}

/** `name` is the path of the listener in the configuration. */
async function bindAt<S>(
  name: string,
  { host, port }: { host: string; port: number },
  configFile: string,
  opening: Promise<S>,
): Promise<S> {
  try {
    return await opening;
  } catch (fault) {
    if (!(fault instanceof Error && "code" in fault && "syscall" in fault)) throw fault;
    const remedy =
      fault.code === "EADDRINUSE"
        ? `is in use: stop the process that listens there, or change "${name}.port"`
        : `cannot be listened on, because ${describeListenFault(String(fault.code))}: change "${name}.host" or "${name}.port"`;
    throw new StartRefused(`${host}:${port} ${remedy} in ${configFile}.`);
  }
}
