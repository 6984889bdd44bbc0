/**
 * The service within this process: the handlers of all endpoints over the embedded store in memory, without listeners,
 * TLS or a process of its own. For what the flows decide; the same questions can be asked of a `World`.
 */
import assert from "node:assert/strict";
import { type Answer, encodeForm, type Sent } from "../../scripts/http-client.ts";
import { app } from "../../src/app.ts";
import { loadConfig } from "../../src/config/config.ts";
import { leafOf } from "../../src/http/message.ts";
import type { Ports } from "../../src/ports.ts";
import type { Log } from "../../src/start/log.ts";
import { openService, type Service as StartedService } from "../../src/start/service.ts";
import { asDescribed } from "./described.ts";
import { migratedFile } from "./migrated.ts";
import { assertReplays } from "./replay.ts";
import { consentAdded, consentOf, makeSurroundings, type Service, type WorldOptions } from "./world.ts";

const LOG = "test";
const MORE_THAN_ANY = 100_000;
const ALL = [{ log: LOG, afterSeq: -1, toSeq: MORE_THAN_ANY }];
const QUIET: Log = {
  entry: () => true,
  request: () => {},
  tell: () => {},
  status: () => ({ waitingBytes: 0, lostLines: 0 }),
  close: () => {},
};

export type ServiceOptions = WorldOptions & {
  /** Whether the store is the file of the configuration, where commands of the host find it. */
  inFile?: boolean;
  /** Ports in place of the usual ones, such as one that would reach the network. */
  ports?: (usual: Ports) => Partial<Ports>;
};

export async function makeService(
  extra: object,
  { inFile = false, ports: others, ...options }: ServiceOptions = {},
): Promise<Service & Pick<StartedService, "ports" | "people">> {
  const surroundings = await makeSurroundings(extra, options);
  const config = loadConfig(surroundings.configFile);
  assert.ok(config.ok, JSON.stringify(config));
  const { fixed, ...rest } = config.value;
  const service = await openService(
    {
      ...rest,
      fixed: { ...fixed, store: inFile ? fixed.store : { ...fixed.store, sqlite: await migratedFile() } },
    },
    { log: QUIET, onFatal: assert.fail },
  );
  const { ports, people } = service;
  const handle = app({ ...ports, ...others?.(ports) }, people);
  const { signal: deadline } = new AbortController();
  let requests = 0;
  const send = async (path: string, sent: Partial<Sent> = {}): Promise<Answer> => {
    const { method = "GET", headers = {}, body, cert, agent } = sent;
    const address = agent?.options.localAddress ?? "127.0.0.1";
    const requestId = `r-${++requests}`;
    const request = new Request(`${surroundings.issuer}${path}`, { method, headers, body: body ?? null });
    const certificates = derOf(cert ?? "");
    const leaf = leafOf(certificates);
    const response = await handle(request, { address, certificates, leaf, requestId, deadline });
    const fields = Object.entries(response.headers).map(([name, value]) => [name.toLowerCase(), value]);
    const answered: Record<string, string> = Object.fromEntries(fields);
    const isJson = /[/+]json/.test(answered["content-type"] ?? "");
    const text = typeof response.body === "string" ? response.body : response.body.toHex();
    return asDescribed(method, path, {
      status: response.status,
      headers: { ...answered, "x-request-id": requestId },
      body: isJson && text !== "" ? JSON.parse(text) : {},
      text,
    });
  };
  return {
    ...surroundings,
    ports,
    people,
    get: send,
    token: (form, headers = {}, certificate = {}) =>
      send("/token", {
        ...certificate,
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
        body: typeof form === "string" ? form : encodeForm(form),
      }),
    async consent(...of) {
      const consent = consentOf(...of);
      const recorded = await ports.journal.record({
        event: consentAdded(consent),
        consent: { add: consent },
      });
      assert.ok(recorded.ok);
      return consent.id;
    },
    async events() {
      const records = await ports.audit.find({ terms: [], spans: ALL, limit: MORE_THAN_ANY });
      return records.toSorted((a, b) => a.seq - b.seq).map(({ body }) => JSON.parse(body));
    },
    async stop() {
      const { policy } = ports.settings();
      const records = await ports.audit.find({ terms: [], spans: ALL, limit: MORE_THAN_ANY });
      assertReplays(records, policy);
      await service.close();
      await surroundings.remove();
    },
  };
}

const derOf = (pem: string): Uint8Array[] =>
  [...pem.matchAll(/-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/g)].map(([, base64 = ""]) =>
    Buffer.from(base64, "base64"),
  );
