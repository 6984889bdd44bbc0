/** `npm run suite`: see README.md beside this file. */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { FEATURES, type Feature } from "./parties.ts";
import { toJson, toJunit, toText } from "./report.ts";
import { runSuite } from "./runner.ts";
import type { Adapter } from "./types.ts";

const USAGE = `npm run suite -- [--adapter FILE] [--issuer URL] [--client ID --secret SECRET] [options]

  --adapter FILE         how the server is started or set up (adapters/*.ts, or JSON)
  --issuer URL           the server, unless the adapter starts it
  --client, --secret     without an adapter: the only client, and its secret (or SUITE_SECRET)
  --token-endpoint URL   of a server without metadata
  --resource URI         the API to ask tokens for; --scope SCOPE: its scope
  --offers A,B           without an adapter: what the server offers besides client credentials
  --ca FILE              the authority of the server's certificate, PEM
  --only PREFIX,…        only checks whose id begins so, and what they rest on
  --all                  print the passed ones too, and what was sent and received of each
  --json FILE, --junit FILE   reports`;

const { values } = parseArgs({
  options: {
    ...{ adapter: { type: "string" }, issuer: { type: "string" }, client: { type: "string" } },
    ...{ secret: { type: "string" }, "token-endpoint": { type: "string" }, resource: { type: "string" } },
    ...{
      scope: { type: "string" },
      offers: { type: "string" },
      ca: { type: "string" },
      only: { type: "string" },
    },
    ...{
      all: { type: "boolean" },
      json: { type: "string" },
      junit: { type: "string" },
      help: { type: "boolean" },
    },
  } as const,
});

/** One client and a token endpoint: what can be asked of any server. */
function small(): Adapter {
  const { client: id, secret = process.env.SUITE_SECRET, resource, scope, offers = "" } = values;
  if (id === undefined || secret === undefined)
    throw new Error(`name an adapter, or a client by --client with its secret in SUITE_SECRET\n\n${USAGE}`);
  const others = offers.split(",").filter((one) => one !== "");
  const unknown = others.filter((one) => !FEATURES.includes(one as Feature));
  if (unknown.length > 0)
    throw new Error(`--offers: ${unknown.join(", ")} is none of ${FEATURES.join(", ")}`);
  const only = { id, secret, method: "client_secret_basic" } as const;
  const endpoint = values["token-endpoint"];
  return {
    server: values.issuer ?? endpoint ?? "",
    offers: ["client_credentials", ...(others as Feature[])],
    // It asks about its own tokens.
    roles: { machine: only, gate: only },
    names: { ...(resource !== undefined && { api: resource }), ...(scope !== undefined && { read: scope }) },
    ...(endpoint !== undefined && {
      tokenEndpoint: endpoint,
      issuer: values.issuer ?? new URL(endpoint).origin,
    }),
  };
}

async function adapterOf(file: string): Promise<Adapter> {
  if (file.endsWith(".json")) return JSON.parse(readFileSync(file, "utf8"));
  return (await import(pathToFileURL(resolve(file)).href)).adapter;
}

async function ask(): Promise<void> {
  const { adapter, issuer, ca, only, json, junit, all = false } = values;
  const run = await runSuite(adapter === undefined ? small() : await adapterOf(adapter), {
    ...(issuer !== undefined && { issuer }),
    ...(ca !== undefined && { ca: readFileSync(ca, "utf8") }),
    ...(only !== undefined && { only: only.split(",") }),
  });
  console.log(toText(run, all));
  if (json !== undefined) writeFileSync(json, toJson(run));
  if (junit !== undefined) writeFileSync(junit, toJunit(run));
  process.exitCode = run.results.some(({ outcome, level }) => outcome === "failed" && level === "MUST")
    ? 1
    : 0;
}

if (values.help === true) console.log(USAGE);
else
  await ask().catch((fault: Error) => {
    console.error(fault.message);
    process.exitCode = 2;
  });
