/** `mandate probe`: what a running server answers to what it must refuse. */
import { clock } from "../adapters/clock.ts";
import { escapeUnsafe } from "../audit/safe-text.ts";
import { EXIT } from "../limits/process.ts";
import { err, type Result } from "../result.ts";
import { type Command, onFiles, type Terminal } from "./command.ts";
import { readNamed } from "./named-file.ts";
import type { CommandArguments } from "./options.ts";
import { agreesTo, ask, type Reached, trusting } from "./probe/ask.ts";
import { json, type Probed, type Row } from "./probe/row.ts";
import { metadataUrl, OLD_TLS, ROWS } from "./probe/rows.ts";
import { jsonLine, word } from "./text.ts";

const OUTCOMES = ["kept", "broken", "not_asked", "not_judged"] as const;
type Outcome = (typeof OUTCOMES)[number];
type Finding = Pick<Row, "clause" | "asks" | "wants"> & { outcome: Outcome; got?: string | undefined };

export function probeCommand(given: CommandArguments): Result<Command, string> {
  const [issuer = ""] = given.args;
  if (URL.parse(issuer)?.protocol !== "https:") return err("URL is not an https URL");
  const place = given.one("connect");
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(place ?? "") ?? [];
  if (place !== undefined && host === undefined) return err("--connect is not HOST:PORT");
  const form = given.has("json") ? "json" : given.has("metrics") ? "metrics" : "text";
  return onFiles((terminal) => {
    const file = given.one("ca");
    const secureContext = trusting(file === undefined ? undefined : readNamed(file));
    const reached = { secureContext, host, port: port === undefined ? undefined : Number(port) };
    return probe(terminal, issuer, reached, form);
  });
}

async function probe(
  { print, printError }: Terminal,
  issuer: string,
  reached: Reached,
  form: "json" | "metrics" | "text",
): Promise<number> {
  const first = await answerTo({ method: "GET", url: metadataUrl(issuer) }, reached);
  if (typeof first === "string") {
    printError(`${issuer} does not answer: ${first}`);
    return EXIT.unavailable;
  }
  const probed: Probed = { issuer, metadata: json(first), nowSeconds: Math.floor(clock.nowMs() / 1000) };
  const findings: Finding[] = [];
  const tell = (finding: Finding): void => {
    findings.push(finding);
    if (form === "json") print(jsonLine(finding));
    if (form === "text") print(escapeUnsafe(line(finding)));
  };
  // One at a time: a probe is no load, and the order of its lines in the log is that of the rows.
  for (const row of ROWS) tell(await judge(row, probed, reached));
  for (const { clause, version } of OLD_TLS) {
    const agreed = await agreesTo(version, issuer, reached);
    const outcome = agreed === undefined ? "not_judged" : agreed ? "broken" : "kept";
    tell({ clause, asks: `a connection by ${version}`, wants: "no connection", outcome });
  }
  const counts = OUTCOMES.map((outcome) => [
    outcome,
    findings.filter((one) => one.outcome === outcome).length,
  ]);
  if (form === "metrics") print(metrics(issuer, counts, probed.nowSeconds));
  if (form === "text") print(`${issuer}: ${counts.map(([name, count]) => `${count} ${name}`).join(", ")}`);
  if (findings.some(({ outcome }) => outcome === "broken")) return EXIT.refused;
  return findings.some(({ outcome }) => outcome === "not_judged") ? EXIT.unavailable : EXIT.done;
}

async function judge(row: Row, probed: Probed, reached: Reached): Promise<Finding> {
  const { clause, asks, wants, needs } = row;
  const finding = (outcome: Outcome, got?: string): Finding => ({
    clause,
    asks,
    wants,
    outcome,
    got,
  });
  if (needs !== undefined && typeof probed.metadata[needs] !== "string") return finding("not_asked");
  const answer = await answerTo(row.request(probed), reached);
  if (typeof answer === "string") return finding("not_judged", answer);
  const { status, headers } = answer;
  const { error } = json(answer);
  const told = [status, error, headers.location].flatMap((part) =>
    part === undefined ? [] : [String(part)],
  );
  const got = told.join(" ");
  // CONF-D-24: too many failures of this machine, or a store that does not answer, say nothing of the rule.
  if (status === 429 || status === 503) return finding("not_judged", got);
  return finding(row.fits(answer, probed) ? "kept" : "broken", got);
}

/** The answer, or why there is none. */
async function answerTo(...of: Parameters<typeof ask>) {
  try {
    return await ask(...of);
  } catch (fault) {
    return fault instanceof Error ? fault.message || String(fault) : String(fault);
  }
}

const line = ({ outcome, clause, asks, wants, got }: Finding): string =>
  `${outcome.padEnd(10)} ${clause} ${asks}${
    outcome === "broken" || outcome === "not_judged" ? `: wants ${wants}, got ${word(got ?? "it")}` : ""
  }`;

/** What `--metrics` prints, for the alerts. */
export const PROBE_METRICS = {
  mandate_probe_rules: { type: "gauge", labels: ["issuer", "outcome"] },
  mandate_probe_time_seconds: { type: "gauge", labels: ["issuer"] },
} as const;

const metrics = (
  issuer: string,
  counts: readonly (readonly (string | number)[])[],
  atSeconds: number,
): string =>
  [
    "# TYPE mandate_probe_rules gauge",
    ...counts.map(
      ([outcome, count]) =>
        `mandate_probe_rules{issuer=${JSON.stringify(issuer)},outcome="${outcome}"} ${count}`,
    ),
    "# TYPE mandate_probe_time_seconds gauge",
    `mandate_probe_time_seconds{issuer=${JSON.stringify(issuer)}} ${atSeconds}`,
  ].join("\n");
