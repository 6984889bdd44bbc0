/** What is fetched from others: trust bundles, key sets, clients' documents; each request to them is a log line. */
import { openClientDocuments } from "../adapters/clients/client-documents.ts";
import type { EncryptionKeys } from "../adapters/crypto/encryption-keys.ts";
import { makeFetchBudget } from "../adapters/remote/fetch-budget.ts";
import type { FetchResult } from "../adapters/remote/fetch-timer.ts";
import { openFetchedKeys } from "../adapters/remote/fetched-keys.ts";
import { jwksSources } from "../adapters/remote/key-sets.ts";
import type { SourceOptions } from "../adapters/remote/key-sources.ts";
import type { Change } from "../adapters/remote/polled-document.ts";
import { bundleSources } from "../adapters/remote/trust-bundles.ts";
import type { Store } from "../adapters/store/store.ts";
import type { AuditEvent } from "../audit/event.ts";
import { LOG_PATH_CHARS_MAX } from "../limits/process.ts";
import type { Clock, Random, Timers } from "../ports.ts";
import { defined } from "../result.ts";
import type { Limits } from "../settings/sections.ts";
import type { Settings } from "../settings/settings.ts";
import type { Log } from "./log.ts";

export type RemoteOptions = {
  clock: Clock;
  timers: Timers;
  store: Store;
  rates: Limits;
  settings: () => Settings;
  record: (event: AuditEvent) => void;
  log: Pick<Log, "request" | "tell">;
  random: Random;
  encryptionKeys: EncryptionKeys;
};

export type Remote = ReturnType<typeof openRemote>;

export function openRemote(options: RemoteOptions) {
  const { clock, timers, store, rates, settings, record, log } = options;
  const sourceOptions = (kind: "trust_bundle" | "key_set"): SourceOptions => ({
    clock,
    timers,
    rows: store.polled,
    onChange: (name, change) => record(changed(kind, name, change)),
    // SFD-7.6-1
    onFetch: (name, note) => printFetch(log, kind, name, note),
  });
  const fetching = {
    clock,
    timers,
    budget: makeFetchBudget(clock, rates),
    onFetch: (url: string, note: FetchResult) => printFetch(log, "client_url", url, note),
  };
  const bundles = bundleSources(sourceOptions("trust_bundle"));
  const issuers = jwksSources("issuer_keys", sourceOptions("key_set"));
  const clientKeys = jwksSources("client_keys", sourceOptions("key_set"));
  return {
    sources: {
      bundles,
      issuers,
      clientKeys,
      clientDocuments: openClientDocuments({ ...fetching, settings }),
      fetchedKeys: openFetchedKeys(fetching),
    },
    configure({ trustDomains, trustedIssuers, clients }: Settings): void {
      bundles.configure(new Map([...trustDomains].map(([name, { bundle }]) => [name, bundle])));
      issuers.configure(new Map([...trustedIssuers].map(([name, { keys }]) => [name, keys])));
      const published = [...clients].flatMap(([id, { auth }]) =>
        "jwksUri" in auth ? [[id, auth.jwksUri] as const] : [],
      );
      clientKeys.configure(new Map(published));
    },
    stop(): void {
      for (const sources of [bundles, issuers, clientKeys]) sources.stop();
    },
  };
}

export function printFetch(
  log: Pick<Log, "request">,
  fetched: string,
  name: string,
  note: FetchResult,
): void {
  const shown = name.slice(0, LOG_PATH_CHARS_MAX);
  const level = note.failure === undefined ? "info" : "warning";
  const time = new Date().toISOString();
  log.request({ time, level, event: "fetch", fetched, name: shown, ...note });
}

const changed = (kind: "trust_bundle" | "key_set", name: string, { state, reason }: Change): AuditEvent => ({
  type: `${kind}.${state}`,
  outcome: state === "updated" ? "allow" : "error",
  reason: state,
  detail: defined({ name, cause: reason }),
});
