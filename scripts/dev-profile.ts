/**
 * Creates the development profile: keys, certificates, a trust domain, a stand-in identity provider and an example
 * policy, for loopback only. `npm start` runs it before the server; an existing profile is kept.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { SCHEMA_FILE } from "../src/program.ts";

const TRUST_DOMAIN = "dev.example";
const CLIENT_ID = "nightly-report";
const RESOURCE_SERVER = "trips-api";
/** An app on the user's own computer, which has no secret. */
const APP = "travel-app";
const FOLDER = "data";

export type ProfileOptions = {
  port?: number;
  idpPort?: number;
  /** Present: users sign in, at a stand-in for a provider, and clients with certificates are served on this port. */
  people?: { mtlsPort: number };
  /** The host name in the URLs of server and identity provider; both listen on 127.0.0.1. */
  host?: string;
  trustDomain?: string;
};

export type Profile = { configFile: string; issuer: string; idpIssuer: string };

type Place = { issuer: string; idpIssuer: string; listenHost: string; port: number; trustDomain: string };

/** Creates the profile in a new or empty folder, completely or not at all. */
export async function makeProfile(folder: string, options: ProfileOptions = {}): Promise<Profile> {
  const { port = 8443, idpPort = 8444, host = "localhost", trustDomain: name = TRUST_DOMAIN } = options;
  const listenHost = "127.0.0.1";
  const issuer = `https://${host}:${port}`;
  const idpIssuer = `https://${host}:${idpPort}`;
  const unfinished = `${resolve(folder)}.tmp-${randomBytes(6).toString("hex")}`;
  const save = (path: string, content: string) => {
    const file = join(unfinished, path);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, content, { mode: 0o600, flag: "wx" });
  };
  // Imported here, so that a server with an existing profile starts without development packages.
  const [keys, pki] = await Promise.all([import("./dev-keys.ts"), import("./dev-pki.ts")]);
  try {
    // The authority's private key is not stored, so that a client that trusts it trusts these two servers only.
    const authority = await pki.makeAuthority("Mandate development authority");
    const names = [...new Set([host, "localhost", "127.0.0.1", "::1"])];
    const server = await pki.issueServerCertificate(authority, names);
    save("tls/ca.pem", authority.certPem);
    save("tls/cert.pem", server.certPem);
    save("tls/key.pem", server.keyPem);

    save("keys/encryption-key", randomBytes(32).toString("base64url"));
    for (const clientId of [CLIENT_ID, RESOURCE_SERVER]) {
      save(`clients/${clientId}`, randomBytes(32).toString("base64url"));
    }

    const trustDomain = await pki.makeTrustDomain(name);
    save("trust-domain/bundle.json", toJson(keys.bundle(trustDomain)));
    keys.saveTrustDomain(trustDomain, join(unfinished, "trust-domain", "authority.json"));

    const idp = await pki.issueServerCertificate(authority, names);
    save("idp/tls-cert.pem", idp.certPem);
    save("idp/tls-key.pem", idp.keyPem);
    const idpKeyPem = await keys.makeKeyPem();
    save("idp/key.pem", idpKeyPem);
    save("idp/jwks.json", toJson({ keys: [await keys.signingJwk(idpKeyPem)] }));
    save("idp/idp.json", toJson({ issuer: idpIssuer, host: listenHost, port: idpPort }));

    const place = { issuer, idpIssuer, listenHost, port, trustDomain: name };
    const config = devConfig(place);
    const mtlsPort = options.people?.mtlsPort;
    const people = mtlsPort === undefined ? {} : forPeople(config, { ...place, mtlsPort, host });
    save("config.schema.json", readFileSync(SCHEMA_FILE, "utf8"));
    save("config.json", toJson({ ...config, ...people }));
    renameSync(unfinished, folder);
  } catch (fault) {
    rmSync(unfinished, { recursive: true, force: true });
    throw fault;
  }
  return { configFile: join(folder, "config.json"), issuer, idpIssuer };
}

/** The server's configuration; file names are relative to it. */
function devConfig({ issuer, idpIssuer, listenHost, port, trustDomain }: Place) {
  const workload = (path: string) => `spiffe://${trustDomain}/${path}`;
  const agents = [workload("agents/planner"), workload("agents/booking"), workload("crew/*")];
  const scopes = ["trips.read", "trips.book"];
  const forTravellers = {
    subjects: { issuers: [idpIssuer] },
    subjectToken: { audiences: [issuer, "self"] },
    consent: "record",
  };
  return {
    $schema: "./config.schema.json",
    version: 1,
    profile: "development",
    issuer,
    listen: {
      host: listenHost,
      port,
      tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } },
    },
    store: { sqlite: "mandate.sqlite" },
    keys: { encryptionKey: { file: "keys/encryption-key" } },
    audit: { instance: "development" },
    trustDomains: { [trustDomain]: { bundle: { file: "trust-domain/bundle.json" } } },
    trustedIssuers: {
      [idpIssuer]: {
        // The stand-in serves the same keys, but need not run when the server starts.
        keys: { file: "idp/jwks.json" },
        acceptAs: ["jwt"],
        subjects: "keep",
        // It tells which of its users it disabled, as the demo shows.
        signals: { name: "stand-in" },
      },
    },
    clients: {
      [CLIENT_ID]: {
        method: "client_secret",
        secrets: [{ file: "clients/nightly-report" }],
        defaultTarget: "https://api.example",
      },
      // The API itself, which asks about the tokens that it receives.
      [RESOURCE_SERVER]: {
        method: "client_secret",
        secrets: [{ file: "clients/trips-api" }],
        grantTypes: [],
      },
    },
    agents: {
      [workload("agents/planner")]: {
        title: { en: "Trip planner", de: "Reiseplaner" },
        purpose: { en: "Plans trips.", de: "Plant Reisen." },
        owner: "Travel desk",
        contact: "travel@example.com",
      },
      [workload("agents/booking")]: {
        title: { en: "Booking agent", de: "Buchungsagent" },
        purpose: { en: "Books what the planner found.", de: "Bucht, was der Reiseplaner findet." },
        owner: "Travel desk",
        contact: "travel@example.com",
      },
      [workload("crew/*")]: {
        title: "Crew",
        purpose: { en: "Does one part of a booking each.", de: "Erledigt je einen Teil einer Buchung." },
        owner: "Travel desk",
      },
      [CLIENT_ID]: { title: { en: "Nightly report", de: "Nachtbericht" }, owner: "Accounting" },
      [RESOURCE_SERVER]: { title: { en: "Trips API", de: "Reise-API" } },
    },
    targets: [
      { names: ["booking-agent"], owners: [workload("agents/booking")], scopes },
      { names: ["crew-desk"], owners: [workload("crew/*")], scopes },
      { names: ["https://api.example"], introspectors: [RESOURCE_SERVER], scopes },
    ],
    policies: [
      {
        id: "nightly-report-credentials",
        allow: "client_credentials",
        clients: [CLIENT_ID],
        targets: ["https://api.example"],
        scopes: ["trips.read"],
      },
      {
        id: "agents-own-tokens",
        allow: "client_credentials",
        actors: agents,
        targets: ["https://api.example"],
        scopes: ["trips.read"],
      },
      {
        id: "crew-for-travellers",
        allow: "delegation",
        actors: agents,
        ...forTravellers,
        maxChainDepth: 4,
        targets: ["booking-agent", "crew-desk", "https://api.example"],
        scopes,
        lifetimeSeconds: 300,
      },
      {
        id: "crew-impersonation",
        allow: "impersonation",
        actors: [workload("crew/*")],
        ...forTravellers,
        subjects: { issuers: [idpIssuer], subs: ["alice"] },
        targets: ["https://api.example"],
        scopes: ["trips.read"],
      },
    ],
    drafts: ["draft-ietf-oauth-spiffe-client-auth-02"],
  };
}

type PeoplePlace = Place & { mtlsPort: number; host: string };

/** What is other where users sign in: a stand-in for their provider, and an app that may ask them. */
function forPeople(
  { clients, agents, targets, policies, listen }: ReturnType<typeof devConfig>,
  { idpIssuer, mtlsPort, host }: PeoplePlace,
): object {
  const scopes = ["trips.read", "trips.book"];
  const shown = {
    people: true,
    title: "the booking agent",
    sentences: { "trips.read": "read your trips", "trips.book": "book trips for you" },
  };
  return {
    // A browser is asked for no certificate.
    mtls: { ...listen, port: mtlsPort, origin: `https://${host}:${mtlsPort}` },
    signIn: {
      providers: {
        "stand-in": {
          issuer: idpIssuer,
          title: "the stand-in provider",
          clientId: "mandate",
          idTokenAlg: "ES256",
          ca: { file: "tls/ca.pem" },
          privateNetworks: ["127.0.0.0/8", "::1/128"],
        },
      },
    },
    clients: {
      ...clients,
      [APP]: { method: "none", redirectUris: ["http://127.0.0.1/callback"] },
    },
    agents: {
      ...agents,
      [APP]: { title: { en: "Travel app", de: "Reise-App" }, purpose: "Shows you your trips." },
    },
    targets: targets.map((target) =>
      target.names[0] === "booking-agent" ? { ...target, ...shown } : target,
    ),
    policies: [
      // Users can sign in, so an agent may ask them for a consent that it lacks.
      ...policies.map((rule) => (rule.id === "crew-for-travellers" ? { ...rule, askUser: true } : rule)),
      {
        id: "apps-for-travellers",
        allow: "authorization_code",
        clients: [APP],
        subjects: { issuers: [idpIssuer] },
        targets: ["booking-agent"],
        scopes,
        refresh: true,
      },
    ],
  };
}

function toJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The commands to try next, in a second terminal. */
function nextSteps(folder: string): readonly string[] {
  const { issuer, signIn } = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
  const query = new URLSearchParams({
    response_type: "code",
    client_id: APP,
    redirect_uri: "http://127.0.0.1:49152/callback",
    scope: "trips.read trips.book",
    code_challenge: randomBytes(32).toString("base64url"),
    code_challenge_method: "S256",
  });
  const inBrowser = [
    `Or sign in and allow an app, in a browser that trusts ${folder}/tls/ca.pem; at the end no app listens, and the address has a code:`,
    `  ${issuer}/authorize?${query}`,
  ];
  return [
    "When the server listens, get a token or run the demo from another terminal:",
    `  curl --cacert ${folder}/tls/ca.pem -u "${CLIENT_ID}:$(cat ${folder}/clients/${CLIENT_ID})" -d grant_type=client_credentials ${issuer}/token`,
    `  npm run demo -- --against ${issuer}`,
    ...(signIn === undefined ? [] : inBrowser),
  ];
}

async function prepare(): Promise<void> {
  const file = join(FOLDER, "config.json");
  if (existsSync(file)) {
    // In older profiles the stand-in is a setting of the server, which no longer has it.
    const { standIn, ...config } = JSON.parse(readFileSync(file, "utf8"));
    if (standIn !== undefined) writeFileSync(file, toJson(config));
    return;
  }
  if (existsSync(FOLDER) && readdirSync(FOLDER).length > 0) {
    console.error(
      `./${FOLDER} has files but no config.json. Move it away, or start the server with your own configuration: ` +
        "node src/main.ts --config FILE",
    );
    process.exit(1);
  }
  const { issuer, idpIssuer } = await makeProfile(FOLDER, { people: { mtlsPort: 8445 } });
  console.log(`Created a development profile in ./${FOLDER}, for this machine only:`);
  console.log(`  server             ${issuer}`);
  console.log(`  identity provider  ${idpIssuer} (a stand-in, in the same process)`);
  console.log(`  trust domain       ${TRUST_DOMAIN}`);
  console.log(`  CA for clients     ${FOLDER}/tls/ca.pem`);
  console.log(`Remove ./${FOLDER} to create a new one.`);
}

if (import.meta.main) {
  await prepare();
  for (const line of nextSteps(FOLDER)) console.log(line);
}
