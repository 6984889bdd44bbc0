/**
 * nginx, Apache and HAProxy end TLS in front of the listener `proxy`, each with the configuration that the page of
 * recipes prints: an X.509-SVID gets a token through each, and a client that sends the field itself gets none.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeWorld, TRUST_DOMAIN, type World, workload } from "../../test/support/world.ts";
import { derOf } from "../dev-keys.ts";
import { issueClientCertificate, makeAuthority, mintX509Svid } from "../dev-pki.ts";
import { freePorts } from "../server-process.ts";

const HERE = "127.0.0.1";
const NAME = "proxy.example";
const API = "https://api.example";
const MODULES = "/usr/lib/apache2/modules";
const PAGE = "proxies";

type Recipe = {
  program: string;
  language: string;
  form: string;
  /** Words that run the file, and lines that are of this machine. */
  words: (file: string, folder: string) => string[];
  before: (folder: string) => string;
  field: (pem: string) => [name: string, value: string];
};

const rfc9440 = (pem: string): [string, string] => ["Client-Cert", `:${derOf(pem).toString("base64")}:`];
const RECIPES: readonly Recipe[] = [
  {
    program: "nginx",
    language: "nginx",
    form: "escaped-pem",
    words: (file, folder) => ["-p", folder, "-e", "stderr", "-g", "daemon off;", "-c", file],
    before: (folder) => `pid ${folder}/nginx.pid;\nerror_log stderr;\n`,
    field: (pem) => ["SSL-Client-Cert", encodeURIComponent(pem)],
  },
  {
    program: "apache2",
    language: "apache",
    form: "rfc9440",
    words: (file) => ["-f", file, "-DFOREGROUND"],
    before: (folder) =>
      [
        `ServerRoot "${folder}"`,
        `PidFile "${folder}/apache.pid"`,
        `ErrorLog "${folder}/error.log"`,
        "User #65534",
        ...["mpm_event", "authz_core", "ssl", "headers", "proxy", "proxy_http"].map(
          (one) => `LoadModule ${one}_module ${MODULES}/mod_${one}.so`,
        ),
        "",
      ].join("\n"),
    field: rfc9440,
  },
  {
    program: "haproxy",
    language: "haproxy",
    form: "rfc9440",
    words: (file) => ["-db", "-f", file],
    before: () => "",
    field: rfc9440,
  },
];

export async function* runProxies(): AsyncIterable<string> {
  for (const recipe of RECIPES) {
    const { program } = recipe;
    const there = spawnSync(program, ["-v"], { encoding: "utf8" });
    if (there.error !== undefined || (program === "apache2" && !existsSync(MODULES))) {
      yield `${program} not run here: it is not installed`;
      continue;
    }
    const [version = program] = `${there.stdout}${there.stderr}`.split("\n");
    yield `${version.trim()}: ${await runOne(recipe)}`;
  }
}

async function runOne(recipe: Recipe): Promise<string> {
  const authority = await makeAuthority("Authority of the proxy");
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  const listener = { host: HERE, port: 0, tls };
  const world = await makeWorld(
    {
      proxy: { ...listener, ca: { file: "proxy-ca.pem" }, name: NAME, form: recipe.form },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "workloads",
          allow: "client_credentials",
          targets: [API],
          scopes: ["read"],
          actors: [`spiffe://${TRUST_DOMAIN}/*`],
        },
      ],
    },
    { files: { "proxy-ca.pem": authority.certPem } },
  );
  try {
    const { keyPem, certPem } = await issueClientCertificate(authority, [NAME]);
    return await through(recipe, world, `${keyPem}\n${certPem}`);
  } finally {
    await world.stop();
  }
}

async function through(recipe: Recipe, world: World, client: string): Promise<string> {
  const [port = 0] = await freePorts(1);
  const behind = world.server.lines.flatMap((line) => /also listens on .*:(\d+)$/.exec(line)?.[1] ?? [])[0];
  // The recipes name files without quotes, so their folder has no blank.
  const folder = mkdtempSync(join(tmpdir(), "mandate-proxy-"));
  mkdirSync(join(folder, "logs"), { recursive: true });
  const tls = ["key", "cert"].map((name) => readFileSync(join(world.folder, `tls/${name}.pem`), "utf8"));
  writeFileSync(join(folder, "tls.pem"), tls.join("\n"));
  writeFileSync(join(folder, "client.pem"), client);
  writeFileSync(join(folder, "server-ca.pem"), world.ca);
  writeFileSync(join(folder, "client-ca.pem"), world.trustDomain.x509.certPem);
  const printed =
    readFileSync(join(import.meta.dirname, `../deploy/${PAGE}.md`), "utf8")
      .split(`\`\`\`${recipe.language}\n`)[1]
      ?.split("```")[0] ?? "";
  const local = printed
    .replaceAll("/etc/proxy/", `${folder}/`)
    .replaceAll("10.0.0.5:8444", `${HERE}:${behind}`)
    .replace(/^(Listen|\s*listen|\s*bind) :?443/m, `$1 ${HERE}:${port}`);
  const file = join(folder, "recipe.conf");
  writeFileSync(file, recipe.before(folder) + local);
  const child = spawn(recipe.program, recipe.words(file, folder), { stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "exit");
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (part) => {
      said += String(part);
    });
  }
  try {
    const ask = (headers: Record<string, string>, peer = {}) =>
      world.token({ grant_type: "client_credentials", audience: API }, headers, peer, port);
    const answers = () =>
      ask({}).then(
        ({ status }) => status === 400,
        () => false,
      );
    while (!(await answers())) {
      if (child.exitCode !== null) throw new Error(`${recipe.program} ended: ${said.slice(-800)}`);
      await sleep(50);
    }
    const { keyPem, chainPem } = await mintX509Svid(world.trustDomain, workload("agents/planner"));
    const other = await mintX509Svid(world.trustDomain, workload("agents/booking"));
    const svid = { key: keyPem, cert: chainPem };
    const good = await ask({}, svid);
    if (good.status !== 200) throw new Error(`an SVID: ${good.status} ${good.text} ${said.slice(-800)}`);
    const [name, value] = recipe.field(chainPem);
    const sent = await ask({ [name]: value });
    if (sent.body.error !== "invalid_client") throw new Error(`the field of a client: ${sent.text}`);
    const replaced = await ask({ [name]: recipe.field(other.chainPem)[1] }, svid);
    const { client_id: client } = JSON.parse(
      Buffer.from(String(replaced.body.access_token).split(".")[1] ?? "", "base64url").toString(),
    );
    if (client !== workload("agents/planner")) throw new Error(`the field beside an SVID: ${client}`);
    return "an X.509-SVID gets a token, the field of a client alone none, and beside an SVID it is replaced";
  } finally {
    child.kill(recipe.program === "nginx" ? "SIGQUIT" : "SIGTERM");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}
