/** Everything behind the endpoints: store, journal, keys, trust and periodic work, put together as the flows' ports. */
import { countAuthFailures } from "../adapters/audit/auth-failures.ts";
import type { CheckpointOptions } from "../adapters/audit/checkpoints.ts";
import { startCheckpoints } from "../adapters/audit/checkpoints.ts";
import type { LogBehind } from "../adapters/audit/compare-witness.ts";
import { startIndexing } from "../adapters/audit/indexing.ts";
import type { InstanceName } from "../adapters/audit/instance-name.ts";
import { countIntrospections } from "../adapters/audit/introspections.ts";
import type { Loss, OpenJournal } from "../adapters/audit/journal.ts";
import { openJournal } from "../adapters/audit/journal.ts";
import type { RetentionOptions } from "../adapters/audit/retention.ts";
import { startRetention } from "../adapters/audit/retention.ts";
import type { Witness } from "../adapters/audit/witness.ts";
import { openClients } from "../adapters/clients/clients.ts";
import { startIdleRegistrations, startKeptCeilings } from "../adapters/clients/idle-registrations.ts";
import { cpuMs, clock as systemClock, timers as systemTimers } from "../adapters/clock.ts";
import { encryptionKeysOf } from "../adapters/crypto/encryption-keys.ts";
import { hash } from "../adapters/crypto/hash.ts";
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
import type { AtStart } from "../adapters/store/open.ts";
import { openStore, waitAtStart } from "../adapters/store/open.ts";
import type { EventLog, RestoredMark, Store } from "../adapters/store/store.ts";
import { openTestClock } from "../adapters/test-clock.ts";
import { makeThrottle } from "../adapters/throttle.ts";
import type { AuditEvent } from "../audit/event.ts";
import type { Config } from "../config/config.ts";
import type { Counters } from "../http/counters.ts";
import { makeCounters } from "../http/counters.ts";
import type { Watch } from "../http/operations.ts";
import type { People } from "../http/people.ts";
import { FAILURE_MS } from "../limits/connections.ts";
import type { Ports, Timers } from "../ports.ts";
import { readBuild } from "../program.ts";
import { defined, whenDone } from "../result.ts";
import type { Settings } from "../settings/settings.ts";
import type { ClockWatch } from "./clocks.ts";
import { watchClocks } from "./clocks.ts";
import { openJournalAtStart, takeNameAtStart } from "./instance.ts";
import { openKeys, signingKeysOf } from "./keys.ts";
import type { Log } from "./log.ts";
import { makePeopleWing } from "./people.ts";
import type { Remote } from "./remote.ts";
import { openRemote } from "./remote.ts";
import { markIfBehind, markWentBack, watchStore } from "./went-back.ts";
import { openLastWrittenAt, openWitnessAt, tellWitness } from "./witness.ts";

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
  const { fixed } = config;
  const { log, onFatal, stopped } = options;
  let stopping = false;
  let stopWatching = (): void => {};
  let current: Settings = config.settings;
  const settings = (): Settings => current;
  const { clock, timers } =
    fixed.clockFile === undefined
      ? { clock: systemClock, timers: systemTimers }
      : openTestClock(fixed.clockFile);
  const onWait = (why: string): void => {
    const message = `Waiting up to ${fixed.store.startSeconds} s for the store: ${why}`;
    log.tell({ level: "warning", event: "store_awaited", message });
  };
  const atStart = waitAtStart(fixed.store, fixed.store.startSeconds, onWait, stopped);
  const store = await atStart(() => openStore(fixed.store));
  const { instance } = fixed.audit;
  const name = await atStart(() => takeNameAtStart(store, fixed.audit, log, stopped));
  const counters = makeCounters(current.issuer);
  const eventLog = timed(store.log, counters);
  const { witness: place } = fixed.audit;
  const witness = place && (await openWitnessAt(place, log));
  const lastWritten = place && (await openLastWrittenAt(place, { instance, issuer: current.issuer }, log));
  const wroteLast = await lastWritten?.read();
  const writing = { log: instance, store: eventLog, clock, random, mayWrite: name.ensure };
  const keep = (opened: OpenJournal): OpenJournal => {
    opened.follow(() => lastWritten?.note(opened.head()));
    return opened;
  };
  const reopen = async () => keep(await openJournal({ ...writing, onFatal: () => {} }));
  const onLost = async (reason: string, behind?: LogBehind): Promise<void> => {
    if (behind !== undefined) await markWentBack({ store, clock, hash, timers, log, reopen }, behind);
    onFatal(reason);
  };
  const journal = await atStart(() => openJournalAtStart({ ...writing, onFatal: onLost }));
  name.onLost(() => journal.giveUp());
  journal.follow(counters.recorded);
  /** The journal for events outside of requests, for which no caller waits. */
  const record = (event: AuditEvent): void => {
    journal.record({ event }).catch(() => undefined);
  };
  const encryptionKeys = encryptionKeysOf(fixed.keys);
  const fetching = {
    clock,
    timers,
    random,
    store,
    rates: fixed.limits,
    encryptionKeys,
    settings,
    record,
    log,
  };
  const remote = openRemote(fetching);
  const wing = makePeopleWing(fetching);
  const configure = (next: Settings): void => {
    remote.configure(next);
    wing.configure(next);
  };
  const apply = (next: Settings): void => {
    configure(next);
    current = next;
    record(loaded(next));
  };
  await wing.load(current);
  configure(current);
  const authFailures = countAuthFailures(journal, clock, timers);
  const introspections = countIntrospections(journal, clock, timers, tellLostCounts(log));
  const {
    ring,
    work: keyWork,
    keyService,
  } = await atStart(() =>
    openKeys({
      store,
      journal,
      custody: openCustody(encryptionKeys, fixed.keys.service),
      settings,
      clock,
      timers,
      log,
    }),
  );
  const checkpointSigner = ring.signer("checkpoint");
  const onFault = (message: string): void => log.tell({ level: "error", event: "audit_fault", message });
  const trail = { store, journal, signer: checkpointSigner, verifier, clock, timers, onFault };
  const sender = startSender({
    store,
    journal,
    signer: ring.signer("signal"),
    clock,
    timers,
    random,
    hash,
    settings,
    record,
    onFault,
  });
  const throttle = counters.throttling(makeThrottle(clock, fixed.limits));
  const paths = { verify: verifyPath };
  const { failedLately } = throttle;
  const budget = fixed.limits.proofMillisecondsPerSecond;
  const proofs = makeProofQueue({ clock, cpuMs, timers, budget, paths, failedLately, failureMs: FAILURE_MS });
  // The clock is the machine's own, also where a test sets another one for the server.
  const clocks = await watchClocks({ store, instance, name, settings, clock: systemClock, timers, log });
  const comparison = {
    ...trail,
    issuer: current.issuer,
    restored: store.restored,
    hash,
    lastWritten: wroteLast,
  };
  const logsAhead = witness && (await atStart(() => markIfBehind({ ...comparison, witness }, log)));
  // Only now, because what was noted before tells the comparison what the store has lost.
  keep(journal);
  record(loaded(current));
  const periodic = startPeriodicWork(config, { ...trail, witness }, settings, log);
  await periodic.ceilings.run();
  const ours = watchProcess();
  return {
    ports: {
      ...remote.sources,
      clock,
      random,
      hash,
      settings,
      clients: openClients(settings, store.clients),
      registrations: store.registrations,
      registrationTokens: makeRegistrationTokens(encryptionKeys),
      nonces: makeNonces(encryptionKeys, current.issuer, clock),
      facts: store.facts,
      consents: store.consents,
      endings: store.endings,
      subjectEmails: store.subjectEmails,
      families: store.families,
      sessions: store.shortLived,
      jobs: store.jobs,
      journal,
      outage: journal.outage,
      audit: { ...store.audit, keys: checkpointSigner.published },
      authFailures,
      introspections,
      throttle,
      proofs,
      verifier,
      signer: ring.signer("token"),
      grantSigner: ring.signer("grant"),
      signalSigner: ring.signer("signal"),
      paths,
    },
    people: wing.people,
    prepare: wing.load,
    timers,
    restored: store.restored,
    atStart,
    counters,
    watch: {
      ...watchOf(journal, name, remote, log, () => stopping),
      witness() {
        const state = periodic.checkpoints.witness();
        return state && { ...state, logsAhead: logsAhead ?? 0 };
      },
      clock: clockState(clocks),
      connections: () => store.connections?.(),
      process: ours.read,
      keyService,
      streams: sender.states,
      signingKeys: () => signingKeysOf(ring.facts(), settings().keys, clock.nowSeconds()),
    },
    apply(next) {
      apply(next);
      void periodic.ceilings.run();
    },
    watchStore() {
      const onLoss = (loss: Loss): void => journal.giveUp(loss);
      stopWatching = watchStore({ store, journal, clock, timers, onLoss });
    },
    announceStop() {
      stopping = true;
    },
    async close() {
      stopWatching();
      remote.stop();
      wing.stop();
      clocks.stop();
      ours.close();
      const { indexing, retention, registrations, ceilings, forgetting, checkpoints } = periodic;
      const counts = [authFailures, introspections];
      for (const part of [
        ...keyWork,
        sender,
        indexing,
        retention,
        registrations,
        ceilings,
        forgetting,
        ...counts,
        checkpoints,
        journal,
        name,
        store,
      ])
        await part.close();
      await lastWritten?.close();
    },
  };
}

/** The same log; how long each batch takes is counted. */
function timed(log: EventLog, counters: Counters): EventLog {
  return {
    ...log,
    append(batch) {
      const startMs = performance.now();
      const count = (): void => counters.committed(batch.length, (performance.now() - startMs) / 1000);
      return whenDone(
        () => log.append(batch),
        (failures) => {
          count();
          return failures;
        },
        (fault) => {
          count();
          throw fault;
        },
      );
    },
  };
}

/** Starts what runs by the clock: checkpoints of the audit trail, and the removal of what has expired. */
function startPeriodicWork(
  { settings: { issuer }, fixed }: Config,
  trail: Omit<RetentionOptions, "days" | "digest" | "hash"> & { store: Store; witness: Witness | undefined },
  settings: () => Settings,
  log: Log,
) {
  const { instance, checkpoint: every, retentionDays: days } = fixed.audit;
  const options = { ...trail, log: instance, issuer, every, onWitness: tellWitness(log) };
  return {
    checkpoints: startCheckpoints(defined<CheckpointOptions>(options)),
    indexing: startIndexing({ ...trail, log: instance }),
    retention: startRetention({ ...trail, days, hash, digest: () => settings().policy.digest }),
    registrations: startIdleRegistrations({ ...trail, settings }),
    ceilings: startKeptCeilings({ ...trail, settings }),
    forgetting: startForgetting(trail.store, trail.timers, trail.onFault),
  };
}

const tellLostCounts =
  (log: Log) =>
  (questions: number): void => {
    const message = `${questions} questions to /introspect are not in the audit trail, because the store did not take their counts`;
    log.tell({ level: "warning", event: "introspections_uncounted", message });
  };

const loaded = ({ policy: { digest } }: Settings): AuditEvent => ({
  type: "config.changed",
  outcome: "allow",
  reason: "loaded",
  policy: { digest },
});

const clockState =
  ({ state, differenceSeconds }: ClockWatch): Watch["clock"] =>
  () => ({
    state: state(),
    aheadSeconds: differenceSeconds(),
  });

const watchOf = (
  journal: OpenJournal,
  name: InstanceName,
  { sources }: Remote,
  log: Log,
  stopping: () => boolean,
): Omit<
  Watch,
  "witness" | "configuration" | "clock" | "keyService" | "signingKeys" | "connections" | "process" | "streams"
> => ({
  build: readBuild(),
  storeAnswers: () => journal.storeAnswers(),
  hasName: name.stands,
  stopping,
  journal: () => journal.status(),
  log: log.status,
  trustDomains: () => sources.bundles.states(),
  issuers: () => sources.issuers.states(),
});
