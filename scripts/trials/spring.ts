/**
 * The programs of the page for Spring, as printed there, on Spring Boot: an API that checks our tokens by RFC 9068, the
 * same as Spring comes, for a target whose tokens are typed JWT, and its exchange of what it received.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { javaPrograms } from "../../test/support/developers.ts";
import { athOf, makeProver, type Prover } from "../../test/support/dpop.ts";
import { claimsOf, listenAt, makeWorld, type World, workload } from "../../test/support/world.ts";
import { basic } from "../http-client.ts";
import { freePorts } from "../server-process.ts";

export const VERSION = "4.1.2";
const [API, PLAIN, NEXT] = ["https://api.example", "https://plain.example", "https://next.example"] as const;
const scopes = ["trips.read", "trips.book"];
const SECRET = "a secret of the trial, 1234567890";
const owner = workload("trips-api");

/** The programs that this needs and that are not here. */
export const missing = (...programs: readonly string[]): readonly string[] =>
  programs.filter((one) => spawnSync("sh", ["-c", `command -v ${one}`]).status !== 0);

const configurationAt = (issuer: string, port: number) => ({
  issuer,
  listen: listenAt(port),
  clients: {
    caller: { method: "client_secret_basic", secrets: [SECRET] },
    "trips-api": { method: "client_secret_basic", secrets: [SECRET], workload: owner, defaultTarget: NEXT },
  },
  targets: [
    { names: [API], owners: [owner], scopes },
    { names: [PLAIN], owners: [owner], typ: "JWT", scopes },
    { names: [NEXT], scopes },
  ],
  policies: [
    { id: "callers", allow: "client_credentials", clients: ["caller"], targets: [API, PLAIN, NEXT], scopes },
    {
      id: "onward",
      allow: "impersonation",
      clients: ["trips-api"],
      subjects: { issuers: [issuer] },
      subjectToken: { audiences: ["self"] },
      consent: "implied",
      acknowledge: "subjects-not-asked",
      targets: [NEXT],
      scopes,
    },
  ],
});

const dependency = (name: string): string =>
  `<dependency><groupId>org.springframework.boot</groupId><artifactId>${name}</artifactId></dependency>`;

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<parent><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-parent</artifactId><version>${VERSION}</version></parent>
<groupId>example</groupId><artifactId>api</artifactId><version>1</version>
<dependencies>${["web", "oauth2-resource-server", "oauth2-client"].map((one) => dependency(`spring-boot-starter-${one}`)).join("")}</dependencies>
<build><plugins><plugin><groupId>org.springframework.boot</groupId><artifactId>spring-boot-maven-plugin</artifactId></plugin></plugins></build>
</project>`;

function run(folder: string, program: string, ...words: string[]): void {
  const { status, stdout, stderr } = spawnSync(program, words, { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${`${stdout}${stderr}`.slice(-800)}`);
}

/** Writes the programs of the page, and makes one jar of them. */
function build(folder: string): string {
  const sources = join(folder, "src/main/java/example");
  mkdirSync(sources, { recursive: true });
  writeFileSync(join(folder, "pom.xml"), POM);
  for (const [name, program] of javaPrograms()) writeFileSync(join(sources, name), program);
  run(folder, "mvn", "-q", "-B", "package");
  return join(folder, "target/api-1.jar");
}

type Running = { port: number; child: ChildProcess };

async function start(
  world: World,
  folder: string,
  jar: string,
  audience: string,
  profile: string,
): Promise<Running> {
  const [port = 0] = await freePorts(1);
  const { issuer } = world;
  const jwt = "spring.security.oauth2.resourceserver.jwt";
  const client = "spring.security.oauth2.client";
  const properties = {
    "server.port": String(port),
    "spring.profiles.active": profile,
    [`${jwt}.issuer-uri`]: issuer,
    [`${jwt}.audiences`]: audience,
    [`${client}.registration.onward.client-id`]: "trips-api",
    [`${client}.registration.onward.client-secret`]: SECRET,
    [`${client}.registration.onward.authorization-grant-type`]:
      "urn:ietf:params:oauth:grant-type:token-exchange",
    [`${client}.registration.onward.scope`]: "trips.read",
    [`${client}.provider.onward.token-uri`]: `${issuer}/token`,
  };
  const words = Object.entries(properties).map(([name, value]) => `--${name}=${value}`);
  const trust = [
    `-Djavax.net.ssl.trustStore=${join(folder, "trust.p12")}`,
    "-Djavax.net.ssl.trustStorePassword=changeit",
  ];
  const child = spawn("java", [...trust, "-jar", jar, ...words], { stdio: ["ignore", "pipe", "inherit"] });
  let told = "";
  child.stdout.on("data", (part) => {
    told += String(part);
  });
  while (!told.includes("Started Api")) {
    if (child.exitCode !== null) throw new Error(`java ended: ${told.slice(-800)}`);
    await sleep(100);
  }
  return { port, child };
}

async function get({ port }: Running, path: string, headers: Record<string, string>) {
  const sent = request({ host: "127.0.0.1", port, path, headers: { host: `localhost:${port}`, ...headers } });
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  sent.on("error", reject);
  sent.on("response", (answer) => {
    text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject);
  });
  sent.end();
  return promise;
}

function expect(what: string, got: unknown, want: unknown): void {
  if (got !== want) throw new Error(`${what}: ${got} in place of ${want}`);
}

/** Of the client of the trial, bound to the key of `prover` if there is one. */
async function tokenOf(
  world: World,
  audience: string,
  scope = "trips.read",
  prover?: Prover,
): Promise<string> {
  const headers = { authorization: basic("caller", SECRET) };
  const proof = prover && { dpop: prover.prove(`${world.issuer}/token`) };
  const form = { grant_type: "client_credentials", audience, scope };
  const answer = await world.token(form, { ...headers, ...proof });
  if (answer.status !== 200) throw new Error(answer.text);
  return String(answer.body.access_token);
}

async function checkApi(world: World, api: Running, own: string, others: readonly string[]): Promise<void> {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const token = await tokenOf(world, own);
  const good = await get(api, "/trips", bearer(token));
  expect("a good token", `${good.status} ${good.body}`, "200 caller");
  for (const other of others) {
    expect(
      `a token for ${other}`,
      (await get(api, "/trips", bearer(await tokenOf(world, other)))).status,
      401,
    );
  }
  expect("no token", (await get(api, "/trips", {})).status, 401);
  const booking = bearer(await tokenOf(world, own, "trips.book"));
  expect("a token with another scope", (await get(api, "/trips", booking)).status, 403);

  const prover = await makeProver();
  const bound = await tokenOf(world, own, "trips.read", prover);
  const claims = { htm: "GET", ath: athOf(bound) };
  const dpop = prover.prove(`http://localhost:${api.port}/trips`, { claims });
  const authorization = `DPoP ${bound}`;
  expect("a bound token with its proof", (await get(api, "/trips", { authorization, dpop })).status, 200);
  expect("a bound token without proof", (await get(api, "/trips", bearer(bound))).status, 401);
  const another = (await makeProver()).prove(`http://localhost:${api.port}/trips`, { claims });
  const stolen = await get(api, "/trips", { authorization, dpop: another });
  expect("a bound token with the proof of another key", stolen.status, 401);

  const onward = await get(api, "/onward", bearer(token));
  expect("an exchange of the received token", onward.status, 200);
  const { aud, sub } = claimsOf(onward.body);
  expect("the token for the next API", `${sub} at ${aud}`, `caller at ${NEXT}`);
}

export async function* runSpring(): AsyncIterable<string> {
  const absent = missing("java", "mvn", "keytool");
  if (absent.length > 0) {
    yield `not run here: there is no ${absent.join(", no ")}`;
    return;
  }
  const [port = 0] = await freePorts(1);
  const issuer = `https://localhost:${port}`;
  const world = await makeWorld(configurationAt(issuer, port));
  const running: Running[] = [];
  try {
    const folder = join(world.folder, "spring");
    const jar = build(folder);
    const trust = ["-keystore", "trust.p12", "-storepass", "changeit", "-alias", "mandate"];
    run(folder, "keytool", "-importcert", "-noprompt", "-file", join(world.folder, "tls/ca.pem"), ...trust);
    const served = { ...world, issuer };
    for (const [profile, own, other] of [
      ["at-jwt", API, PLAIN],
      ["default", PLAIN, API],
    ] as const) {
      const api = await start(served, folder, jar, own, profile);
      running.push(api);
      await checkApi(served, api, own, [other, NEXT]);
      yield `Spring Boot ${VERSION}, ${profile === "default" ? "as it comes, typ JWT" : "with AtJwt"}: bearer, DPoP, exchange, and 6 refusals`;
    }
  } finally {
    for (const { child } of running) child.kill();
    await world.stop();
  }
}
