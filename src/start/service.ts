/** Everything behind the endpoints: store, journal, keys, trust and periodic work, put together as the flows' ports. */
import { countAuthFailures } from "../adapters/audit/auth-failures.ts";
import { type CheckpointOptions, startCheckpoints } from "../adapters/audit/checkpoints.ts";
import { startIndexing } from "../adapters/audit/indexing.ts";
import { countIntrospections } from "../adapters/audit/introspections.ts";
import type { Loss } from "../adapters/audit/journal.ts";
import { startPolicyArchive } from "../adapters/audit/policy-archive.ts";
import { receiptsOf } from "../adapters/audit/receipts.ts";
import { startRetention } from "../adapters/audit/retention.ts";
import { openClients } from "../adapters/clients/clients.ts";
import { startIdleRegistrations, startKeptCeilings } from "../adapters/clients/idle-registrations.ts";
import { cpuMs, clock as systemClock, timers as systemTimers } from "../adapters/clock.ts";
import { type EncryptionKeys, encryptionKeysOf } from "../adapters/crypto/encryption-keys.ts";
import { hash } from "../adapters/crypto/hash.ts";
import type { KeyRing } from "../adapters/crypto/key-ring.ts";
import { makeNonces } from "../adapters/crypto/nonces.ts";
import { random } from "../adapters/crypto/random.ts";
import { makeRegistrationTokens } from "../adapters/crypto/registration-tokens.ts";
import { verifier } from "../adapters/crypto/verifier.ts";
import { verifyPath } from "../adapters/crypto/x509.ts";
import { watchProcess } from "../adapters/process.ts";
import { makeProofQueue } from "../adapters/proof-queue.ts";
import { openCustody } from "../adapters/remote/key-service.ts";
import { startSender } from "../adapters/signals/sender.ts";
import { startForgetting } from "../adapters/store/forget-successors.ts";
import { type AtStart, waitAtStart } from "../adapters/store/open.ts";
import type { RestoredMark } from "../adapters/store/store.ts";
import { openTestClock } from "../adapters/test-clock.ts";
import { makeThrottle } from "../adapters/throttle.ts";
import type { AuditEvent } from "../audit/event.ts";
import type { Config } from "../config/config.ts";
import { type Counters, makeCounters } from "../http/counters.ts";
import type { Watch } from "../http/operations.ts";
import type { People } from "../http/people.ts";
import { FAILURE_MS } from "../limits/connections.ts";
import type { Clock, Ports, Throttle, Timers } from "../ports.ts";
import { readBuild } from "../program.ts";
import { defined } from "../result.ts";
import type { Limits } from "../settings/sections.ts";
import type { Settings } from "../settings/settings.ts";
import { watchClocks } from "./clocks.ts";
import { type OpenInstance, openInstance } from "./instance.ts";
import { type OpenedKeys, openKeys, signingKeysOf } from "./keys.ts";
import type { Log } from "./log.ts";
import { makePeopleWing } from "./people.ts";
import { openRemote, type Remote, type RemoteOptions } from "./remote.ts";
import { markIfBehind, watchStore } from "./went-back.ts";
import { tellWitness } from "./witness.ts";

export type ServiceOptions = {
  log: Log;
  /** Told once that nothing can be recorded any more. */
  onFatal: (reason: string) => void;
  /** Ends the wait for the store, which then throws its reason. */
  stopped?: AbortSignal;
};

export type Service = {
  ports: Ports;
  timers: Timers;
  restored: RestoredMark;
  atStart: AtStart;
  counters: Counters;
  watch: Omit<Watch, "configuration">;
  /** The people's wing; undefined where users have never signed in. */
  people: () => People | undefined;
  /** What these settings need before they are put in force. */
  prepare(next: Settings): Promise<void>;
  /** Puts other settings in force, and records that. */
  apply(next: Settings): void;
  /** From now on the process ends when the store went back; called when requests may be answered. */
  watchStore(): void;
  /** From now on the instance is not ready; it still serves. */
  announceStop(): void;
  /** Ends the periodic work and writes what is pending. */
  close(): Promise<void>;
};

export async function openService(config: Config, options: ServiceOptions): Promise<Service> {
  const opened = new AsyncDisposableStack();
  try {
    return await openParts(config, options, opened);
  } catch (fault) {
    // What is told is why the start failed, whatever closing meets.
    await opened.disposeAsync().catch(() => undefined);
    throw fault;
  }
}

/** Each part is closed with `opened`, those that were opened last first. */
async function openParts(
  config: Config,
  { log, onFatal, stopped }: ServiceOptions,
  opened: AsyncDisposableStack,
): Promise<Service> {
  const { fixed } = config;
  let stopping = false;
  let current: Settings = config.settings;
  const settings = (): Settings => current;
  const { clock, timers } = openClock(fixed.clockFile);
  const atStart = waitAtStart(fixed.store, fixed.store.startSeconds, tellWait(log, fixed.store), stopped);
  const counters = makeCounters(current.issuer);
  const during = { clock, timers, log, atStart, opened };
  const ours = await openInstance(config, { ...during, counters, stopped, onFatal });
  const { store, journal } = ours;
  /** The journal for events outside of requests, for which no caller waits. */
  const record = (event: AuditEvent): void => {
    journal.record({ event }).catch(() => undefined);
  };
  const encryptionKeys = encryptionKeysOf(fixed.keys);
  const { limits: rates } = fixed;
  const fetching = { clock, timers, random, store, rates, encryptionKeys, settings, record, log };
  const { remote, wing, configure } = openOthers(fetching, opened);
  await wing.load(current);
  configure(current);
  const counts = openCounts(journal, during);
  const custody = openCustody(encryptionKeys, fixed.keys.service);
  const keys = await atStart(() => openKeys({ store, journal, custody, settings, clock, timers, log }));
  for (const one of keys.work) opened.defer(() => one.close());
  const throttle = counters.throttling(makeThrottle(clock, fixed.limits));
  const proofs = openProofQueue(throttle, clock, timers, fixed.limits);
  const work = await startWork(config, ours, keys.ring, { ...during, settings, record });
  return {
    ports: {
      ...portsOf(ours, keys.ring, encryptionKeys, { clock, settings, ...counts, throttle, proofs }),
      ...remote.sources,
    },
    people: wing.people,
    prepare: wing.load,
    timers,
    restored: store.restored,
    atStart,
    counters,
    watch: watchOf(ours, remote, keys, work, { settings, clock, log, stopping: () => stopping }),
    apply(next) {
      configure(next);
      current = next;
      record(loaded(next.policy));
      void work.ceilings.run();
      void work.policies.run();
    },
    watchStore() {
      const onLoss = (loss: Loss): void => journal.giveUp(loss);
      opened.defer(watchStore({ store, journal, clock, timers, onLoss }));
    },
    announceStop() {
      stopping = true;
    },
    close: () => opened.disposeAsync(),
  };
}

type Counting = Pick<Ports, "clock" | "settings" | "authFailures" | "introspections" | "throttle" | "proofs">;

/** What the flows take, but for what is fetched from others. */
function portsOf(
  { store, journal }: OpenInstance,
  ring: KeyRing,
  encryptionKeys: EncryptionKeys,
  counting: Counting,
) {
  const { settings, clock } = counting;
  return {
    ...counting,
    random,
    hash,
    clients: openClients(settings, store.clients),
    registrations: store.registrations,
    registrationTokens: makeRegistrationTokens(encryptionKeys),
    nonces: makeNonces(encryptionKeys, settings().issuer, clock),
    facts: store.facts,
    consents: store.consents,
    endings: store.endings,
    subjectEmails: store.subjectEmails,
    families: store.families,
    sessions: store.shortLived,
    jobs: store.jobs,
    journal,
    outage: journal.outage,
    audit: { ...store.audit, keys: ring.signer("checkpoint").published },
    receipts: receiptsOf({ store, signer: ring.signer("checkpoint"), verifier, issuer: settings().issuer }),
    verifier,
    signer: ring.signer("token"),
    grantSigner: ring.signer("grant"),
    signalSigner: ring.signer("signal"),
    paths: PATHS,
  };
}

const openClock = (file: string | undefined) =>
  file === undefined ? { clock: systemClock, timers: systemTimers } : openTestClock(file);

const tellWait =
  (log: Log, { startSeconds }: Config["fixed"]["store"]) =>
  (why: string): void => {
    const message = `Waiting up to ${startSeconds} s for the store: ${why}`;
    log.tell({ level: "warning", event: "store_awaited", message });
  };

const PATHS = { verify: verifyPath };

const openProofQueue = (
  { failedLately }: Throttle,
  clock: Clock,
  timers: Timers,
  { proofMillisecondsPerSecond: budget }: Limits,
) => makeProofQueue({ clock, cpuMs, timers, budget, paths: PATHS, failedLately, failureMs: FAILURE_MS });

/** What is recorded in sums. */
function openCounts(
  journal: OpenInstance["journal"],
  { clock, timers, log, opened }: Pick<Working, "clock" | "timers" | "log" | "opened">,
) {
  const authFailures = countAuthFailures(journal, clock, timers);
  opened.defer(() => authFailures.close());
  const introspections = countIntrospections(journal, clock, timers, tellLostCounts(log));
  opened.defer(() => introspections.close());
  return { authFailures, introspections };
}

/** What is fetched from others, and the people's wing, which both follow the settings. */
function openOthers(options: RemoteOptions, opened: AsyncDisposableStack) {
  const remote = openRemote(options);
  opened.defer(() => remote.stop());
  const wing = makePeopleWing(options);
  opened.defer(() => wing.stop());
  const configure = (next: Settings): void => {
    remote.configure(next);
    wing.configure(next);
  };
  return { remote, wing, configure };
}

type Working = {
  clock: Clock;
  timers: Timers;
  settings: () => Settings;
  record: (event: AuditEvent) => void;
  log: Log;
  atStart: AtStart;
  opened: AsyncDisposableStack;
};

/** Starts what no request waits for: the sender of signals, the look at clocks, and what runs by the clock. */
async function startWork(
  { settings: { issuer, policy }, fixed }: Config,
  { store, name, journal, witness, wroteLast, noteLast, closeLast }: OpenInstance,
  ring: KeyRing,
  { clock, timers, settings, record, log, atStart, opened }: Working,
) {
  const { instance, checkpoint: every, retentionDays: days } = fixed.audit;
  const onFault = (message: string): void => log.tell({ level: "error", event: "audit_fault", message });
  const trail = { store, journal, signer: ring.signer("checkpoint"), verifier, clock, timers, onFault };
  const closing = <T extends { close(): void | Promise<void> }>(part: T): T => {
    opened.defer(() => part.close());
    return part;
  };
  const signing = { signer: ring.signer("signal"), random, hash, settings, record };
  const sender = closing(startSender({ store, journal, clock, timers, onFault, ...signing }));
  // The clock is the machine's own, also where a test sets another one for the server.
  const clocks = await watchClocks({ store, instance, name, settings, clock: systemClock, timers, log });
  opened.defer(() => clocks.stop());
  const known = { ...trail, issuer, restored: store.restored, hash, lastWritten: wroteLast };
  const logsAhead = witness && (await atStart(() => markIfBehind({ ...known, witness }, log)));
  // Only now, because what was noted before tells the comparison what the store has lost.
  noteLast();
  const policies = closing(startPolicyArchive({ ...trail, settings }));
  await policies.run();
  record(loaded(policy));
  const covering = { ...trail, log: instance, issuer, every, witness, onWitness: tellWitness(log) };
  const checkpoints = startCheckpoints(defined<CheckpointOptions>(covering));
  closeLast(checkpoints);
  closing(startIndexing({ ...trail, log: instance }));
  closing(startRetention({ ...trail, days, hash, digest: () => settings().policy.digest }));
  closing(startIdleRegistrations({ ...trail, settings }));
  const ceilings = closing(startKeptCeilings({ ...trail, settings }));
  closing(startForgetting(store, timers, onFault));
  await ceilings.run();
  const { read: readProcess } = closing(watchProcess());
  return {
    streams: sender.states,
    clocks,
    checkpoints,
    logsAhead: logsAhead ?? 0,
    ceilings,
    policies,
    readProcess,
  };
}

const tellLostCounts =
  (log: Log) =>
  (questions: number): void => {
    const message = `${questions} questions to /introspect are not in the audit trail, because the store did not take their counts`;
    log.tell({ level: "warning", event: "introspections_uncounted", message });
  };

const loaded = ({ digest }: Settings["policy"]): AuditEvent => ({
  type: "config.changed",
  outcome: "allow",
  reason: "loaded",
  policy: { digest },
});

const watchOf = (
  { store, name, journal }: OpenInstance,
  { sources }: Remote,
  { ring, keyService }: OpenedKeys,
  { clocks, checkpoints, logsAhead, readProcess, streams }: Awaited<ReturnType<typeof startWork>>,
  {
    settings,
    clock,
    log,
    stopping,
  }: { settings: () => Settings; clock: Clock; log: Log; stopping: () => boolean },
): Service["watch"] => ({
  build: readBuild(),
  storeAnswers: () => journal.storeAnswers(),
  hasName: name.stands,
  stopping,
  journal: () => journal.status(),
  log: log.status,
  trustDomains: () => sources.bundles.states(),
  issuers: () => sources.issuers.states(),
  witness() {
    const state = checkpoints.witness();
    return state && { ...state, logsAhead };
  },
  clock: () => ({ state: clocks.state(), aheadSeconds: clocks.differenceSeconds() }),
  connections: () => store.connections?.(),
  process: readProcess,
  keyService,
  streams,
  signingKeys: () => signingKeysOf(ring.facts(), settings().keys, clock.nowSeconds()),
});
