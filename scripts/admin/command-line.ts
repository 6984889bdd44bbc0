/** The command line of `npm run admin`, judged as a whole before anything is opened. */
import { parseArgs } from "node:util";
import type { Result } from "../../src/result.ts";
import { err, ok } from "../../src/result.ts";
import { showEvents, showLineage, verifyLogs } from "./audit.ts";
import { addConsent, listConsents, withdrawConsent } from "./consents.ts";
import { explainFile } from "./explain.ts";
import type { Command, Run } from "./options.ts";
import { attempt, DEVELOPMENT_CONFIG, findWrongOption, text, wholeNumber } from "./options.ts";

export const USAGE = `npm run admin -- [--config FILE] COMMAND

  consent add --issuer ISS --subject SUB --actor SPIFFE_ID --target NAME [--target NAME …]
              --scope "SCOPE …" [--expires SECONDS]
                            records that a subject consented, and prints the id
  consent list [--issuer ISS] [--subject SUB]
  consent withdraw ID
  explain FILE [--json]     what the token endpoint would answer to the question in FILE, and why
  audit [--log NAME] [--type TYPE] [--limit N] [--json]
                            the events, or the last N of them, one line each
  audit --jti JTI [--json]  where a token comes from: it and its ancestors, the oldest first
  audit verify              whether every log is as it was written

FILE is data/config.json if not given. --json prints each event as it is stored.
Reading and verifying the audit trail is recorded in it, and so is a question to the policy.`;

const OPTIONS = {
  config: text,
  issuer: text,
  subject: text,
  actor: text,
  target: text,
  scope: text,
  expires: text,
  log: text,
  type: text,
  jti: text,
  limit: text,
  json: { type: "boolean" },
} as const;

const COMMANDS: ReadonlyMap<string, readonly string[]> = new Map([
  ["consent add", ["issuer", "subject", "actor", "target", "scope", "expires"]],
  ["consent list", ["issuer", "subject"]],
  ["consent withdraw", []],
  ["explain", ["json"]],
  ["audit", ["log", "type", "limit", "jti", "json"]],
  ["audit verify", []],
]);

/** Commands that are about one thing, and what it is. */
const NAMED: ReadonlyMap<string, string> = new Map([
  ["consent withdraw", "one id"],
  ["explain", "one file"],
]);

export function parseCommand(args: readonly string[]): Result<Command, string> {
  const parsed = attempt(() => parse(args));
  if (!parsed.ok) return parsed;
  const { values, positionals } = parsed.value;
  const words = positionals[0] === "explain" ? 1 : 2;
  const name = positionals.slice(0, words).join(" ");
  const allowed = COMMANDS.get(name);
  const [id, ...more] = positionals.slice(words);
  if (allowed === undefined) return err(name === "" ? "no command" : `there is no command "${name}"`);
  const what = NAMED.get(name);
  if (more.length > 0 || (id !== undefined) !== (what !== undefined)) {
    return err(`${name} takes ${what ?? "options only"}`);
  }
  const wrong = findWrongOption(name, values, allowed, ["target"]);
  if (wrong !== undefined) return err(wrong);
  const {
    config,
    issuer,
    subject,
    actor,
    target,
    scope,
    expires,
    log,
    type,
    jti,
    limit,
    json = false,
  } = values;
  const configFile = config?.[0] ?? DEVELOPMENT_CONFIG;
  const command = (run: Run) => ok({ configFile, run });

  switch (name) {
    case "consent add": {
      if (!issuer?.[0] || !subject?.[0] || !actor?.[0] || !target || !scope?.[0]) {
        return err("consent add needs --issuer, --subject, --actor, --target and --scope");
      }
      const seconds = expires && wholeNumber(expires[0]);
      if (expires && seconds === undefined) return err("--expires is not a number of seconds");
      const wish = {
        issuer: issuer[0],
        subject: subject[0],
        actor: actor[0],
        targets: target,
        scope: scope[0],
        ...(seconds !== undefined && { expiresInSeconds: seconds }),
      };
      return command((admin) => addConsent(admin, wish));
    }
    case "consent list":
      return command((admin) => listConsents(admin, { issuer: issuer?.[0], subject: subject?.[0] }));
    case "consent withdraw":
      return command((admin) => withdrawConsent(admin, id ?? ""));
    case "explain":
      return command((admin) => explainFile(admin, id ?? "", json));
    case "audit verify":
      return command(verifyLogs);
    default: {
      const token = jti?.[0];
      if (token !== undefined && (log ?? type ?? limit)) return err("--jti goes with --json alone");
      if (token !== undefined) return command((admin) => showLineage(admin, token, json));
      const last = limit && wholeNumber(limit[0]);
      if (limit && last === undefined) return err("--limit is not a number of events");
      return command((admin) => showEvents(admin, { log: log?.[0], type: type?.[0], limit: last, json }));
    }
  }
}

/** One id of ours in 64 begins with a hyphen, which makes it no option. */
const HYPHEN_ID = /^-[\w-]{21}$/;

function parse(args: readonly string[]) {
  const others: string[] = [];
  const ids: string[] = [];
  for (const arg of args) {
    if (!HYPHEN_ID.test(arg)) others.push(arg);
    else if (others.at(-1) === "--jti") others.push(`${others.pop()}=${arg}`);
    else ids.push(arg);
  }
  const end = ids.length > 0 && !others.includes("--") ? ["--"] : [];
  return parseArgs({ args: [...others, ...end, ...ids], options: OPTIONS, allowPositionals: true });
}
