/** Command line → configuration → adapters → listener; SIGHUP reads the configuration again, SIGTERM ends in peace. */
import { parseArgs } from "node:util";
import { countAuthFailures } from "./adapters/audit/auth-failures.ts";
import { keepCheckpoints } from "./adapters/audit/checkpoints.ts";
import { openJournal } from "./adapters/audit/journal.ts";
import { keepRetention } from "./adapters/audit/retention.ts";
import { openWitness } from "./adapters/audit/witness.ts";
import { openClientDocuments } from "./adapters/clients/client-documents.ts";
import { openClients } from "./adapters/clients/clients.ts";
import { keepRegistrations } from "./adapters/clients/idle-registrations.ts";
import { openSigner, verifier } from "./adapters/crypto/jose.ts";
import { clock, hash, makeRegistrationTokens, random } from "./adapters/crypto/system.ts";
import { verifyPath } from "./adapters/crypto/x509.ts";
import { makeFetchBudget } from "./adapters/remote/fetch-budget.ts";
import { openFetchedKeys } from "./adapters/remote/fetched-keys.ts";
import type { FetchNote, SourceOptions } from "./adapters/remote/key-sources.ts";
import { bundleSources, jwksSources } from "./adapters/remote/key-sources.ts";
import type { Change } from "./adapters/remote/polled-document.ts";
import { openStore } from "./adapters/store/open.ts";
import { makeThrottle } from "./adapters/throttle.ts";
import { app } from "./app.ts";
import { CHECKPOINT_ALGORITHM } from "./audit/checkpoint.ts";
import type { AuditEvent } from "./audit/event.ts";
import type { Config, Listener } from "./config/config.ts";
import { loadConfig } from "./config/config.ts";
import type { Handler } from "./http/handler.ts";
import type { LogEntry } from "./http/log.ts";
import { formatLogEntry } from "./http/log.ts";
import type { Operations, Watch } from "./http/operations.ts";
import { makeCounters, serveOperations } from "./http/operations.ts";
import { behindProxy } from "./http/proxy.ts";
import type { ServeOptions, Server } from "./http/serve.ts";
import { serve } from "./http/serve.ts";
import { LOG_PATH_CHARS_MAX, PROXY_HEADER_BYTES_MAX } from "./limits.ts";
import type { Ports, SigningKey } from "./ports.ts";
import type { Settings } from "./settings/settings.ts";
import { OWN_ALGORITHMS } from "./spec/rfc8725.ts";

const DEVELOPMENT_CONFIG = "data/config.json";

const { values } = parseArgs({ options: { config: { type: "string", default: DEVELOPMENT_CONFIG } } });

/** Plain words on standard error; a start that fails ends here. */
function giveUp(lines: readonly string[]): never {
  for (const line of lines) process.stderr.write(`${line}\n`);
  process.exit(1);
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

function read(): Config {
  const config = loadConfig(values.config);
  if (config.ok) return warned(config.value);
  giveUp([`${values.config} does not fit:`, ...config.error.map((problem) => `  ${problem}`)]);
}

function warned(config: Config): Config {
  for (const warning of config.warnings) say(`warning: ${warning}`);
  return config;
}

async function start(): Promise<void> {
  const { settings: first, fixed } = read();
  let settings: Settings = first;
  const store = await openStore(fixed.store);
  const journal = await openJournal({ log: fixed.instance, store: store.log, clock, random, onFatal });
  const counters = makeCounters(first.issuer);
  const counted = counters.counting(journal);

  /** What happens outside of requests is recorded too, and no request waits for it. */
  const note = (event: AuditEvent): void => {
    counted.record({ event }).catch(() => undefined);
  };
  const noteChange =
    (kind: "trust_bundle" | "key_set") =>
    (name: string, { state, reason }: Change): void =>
      note({
        type: `${kind}.${state}`,
        outcome: state === "updated" ? "allow" : "error",
        reason: state,
        detail: { name, ...(reason !== undefined && { cause: reason }) },
      });
  const sayFetched = (fetched: string, name: string, note: FetchNote): void => {
    const shown = name.slice(0, LOG_PATH_CHARS_MAX);
    say(formatLogEntry({ time: new Date().toISOString(), fetched, name: shown, ...note }));
  };
  const sourceOptions = (kind: "trust_bundle" | "key_set"): SourceOptions => ({
    clock,
    rows: store.kept,
    onChange: noteChange(kind),
    // SFD-7.6-1
    onFetch: (name, note) => sayFetched(kind, name, note),
  });
  const bundles = bundleSources(sourceOptions("trust_bundle"));
  const issuers = jwksSources("issuer_keys", sourceOptions("key_set"));
  const clientKeys = jwksSources("client_keys", sourceOptions("key_set"));
  const apply = (next: Settings): void => {
    bundles.configure(new Map([...next.trustDomains].map(([name, { bundle }]) => [name, bundle])));
    issuers.configure(new Map([...next.trustedIssuers].map(([name, { keys }]) => [name, keys])));
    clientKeys.configure(
      new Map(
        [...next.clients].flatMap(([id, { auth }]) =>
          "jwksUri" in auth ? [[id, auth.jwksUri] as const] : [],
        ),
      ),
    );
    settings = next;
    note({
      type: "config.changed",
      outcome: "allow",
      reason: "loaded",
      policy: { digest: next.policy.digest },
    });
  };
  apply(first);

  const noteKey = ({ kid, alg }: SigningKey): void =>
    note({ type: "key.created", outcome: "allow", reason: "none_before", detail: { kid, alg } });
  const authFailures = countAuthFailures(counted, clock);
  const { checkpoint: every, witness: place, retentionDays: days } = fixed.audit;
  const onFault = (words: string): void => void process.stderr.write(`${words}\n`);
  const { encryptionKey } = fixed;
  const ofCheckpoints = [CHECKPOINT_ALGORITHM];
  const checkpointSigner = await openSigner(
    store,
    encryptionKey,
    ofCheckpoints,
    clock,
    noteKey,
    "checkpoint",
  );
  const trail = { store, journal, signer: checkpointSigner, verifier, clock, onFault };
  const witness =
    place && (await openWitness(place).catch(({ message }) => giveUp([`audit.witness: ${message}`])));
  const checkpoints = keepCheckpoints({
    ...{ ...trail, log: fixed.instance, issuer: first.issuer, every },
    ...(witness !== undefined && { witness }),
  });
  const retention = keepRetention({ ...trail, days });
  const registrations = keepRegistrations({ ...trail, settings: () => settings });
  const fetching = {
    clock,
    budget: makeFetchBudget(clock, fixed.rates),
    onFetch: (url: string, note: FetchNote) => sayFetched("client_url", url, note),
  };
  const ports: Ports = {
    clock,
    random,
    hash,
    settings: () => settings,
    clients: openClients(() => settings, store.clients),
    clientDocuments: openClientDocuments({ ...fetching, settings: () => settings }),
    registrations: store.registrations,
    registrationTokens: makeRegistrationTokens(encryptionKey),
    facts: store.facts,
    consents: store.consents,
    journal: counted,
    audit: { ...store.audit, keys: checkpointSigner.published },
    authFailures,
    throttle: makeThrottle(clock, fixed.rates),
    verifier,
    signer: await openSigner(store, encryptionKey, OWN_ALGORITHMS, clock, noteKey),
    grantSigner: await openSigner(store, encryptionKey, OWN_ALGORITHMS, clock, noteKey, "grant"),
    paths: { verify: verifyPath },
    bundles,
    issuers,
    clientKeys,
    fetchedKeys: openFetchedKeys(fetching),
  };
  const handler = app(ports);
  const inUse =
    (name: string, { host, port }: { host: string; port: number }) =>
    (error: NodeJS.ErrnoException): never => {
      if (error.code !== "EADDRINUSE") throw error;
      const remedy = `stop what listens there, or change "${name}.port" in ${values.config}.`;
      giveUp([`${host}:${port} is in use: ${remedy}`]);
    };
  const listen = async (name: string, at: Listener, serving: Handler, rest: Partial<ServeOptions> = {}) => {
    const log = (entry: LogEntry): void => {
      counters.request(entry);
      say(formatLogEntry(entry));
    };
    return serve({ ...at, ...rest, origin: settings.issuer, log }, serving).catch(inUse(name, at));
  };
  const operate = async (at: { host: string; port: number }): Promise<Operations> => {
    const watch: Watch = {
      storeAnswers: () =>
        store.log.head(fixed.instance).then(
          () => true,
          () => false,
        ),
      journal: () => journal.status(),
      trustDomains: () => bundles.states(),
      issuers: () => issuers.states(),
    };
    const opened = await serveOperations(at, watch, counters).catch(inUse("operations", at));
    say(`Health and metrics are at http://${opened.address}:${opened.port}`);
    return opened;
  };
  const servers: Server[] = [];
  const { mtls, proxy } = fixed;
  // RFC8705-5-1: with a listener for them, only its clients are asked for certificates.
  if (mtls !== undefined) servers.push(await listen("mtls", mtls, handler));
  if (proxy !== undefined) {
    const limits = { headerBytesMax: PROXY_HEADER_BYTES_MAX };
    servers.push(await listen("proxy", proxy, behindProxy(ports, proxy, handler), { limits }));
  }
  for (const { address, port } of servers) say(`Mandate also listens on ${address}:${port}`);
  const server = await listen("listen", fixed.listen, handler, { clientCertificates: mtls === undefined });
  servers.push(server);
  const operations = fixed.operations && (await operate(fixed.operations));

  process.on("SIGHUP", () => {
    const next = loadConfig(values.config);
    const problems = next.ok ? [] : [...next.error];
    if (next.ok && next.value.settings.issuer !== settings.issuer) {
      problems.push("issuer: stays what it is until the server is started anew");
    }
    // A wrong file leaves what was in force, and says so.
    for (const problem of problems) say(`not reloaded: ${problem}`);
    if (next.ok && problems.length === 0) apply(warned(next.value).settings);
  });

  let stopping = false;
  const stop = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    await Promise.all(servers.map((one) => one.shutdown()));
    for (const sources of [bundles, issuers, clientKeys]) sources.stop();
    await retention.close();
    await registrations.close();
    await authFailures.close();
    await checkpoints.close();
    await journal.close();
    await operations?.close();
    await store.close();
    process.exit(0);
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  // Whoever waits for this line may stop us at once.
  say(`Mandate ${settings.issuer} listens on ${server.address}:${server.port}.`);
  function onFatal(reason: string): void {
    process.stderr.write(`${reason}\n`);
    void Promise.all(servers.map((one) => one.shutdown())).finally(() => process.exit(1));
  }
}

await start();
