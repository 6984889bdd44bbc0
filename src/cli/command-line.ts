/** The command line of `npm run admin`, checked completely before the store is opened. */
import { parseArgs } from "node:util";
import type { Result } from "../result.ts";
import { defined, err, ok } from "../result.ts";
import { retireLog } from "./audit/retire.ts";
import { showEvents, showLineage, verifyLogs } from "./audit/trail.ts";
import type { NewConsent } from "./consents.ts";
import { addConsent, listStored, withdrawStored } from "./consents.ts";
import { explainFile } from "./explain.ts";
import type { Command, Run } from "./options.ts";
import { attempt, DEVELOPMENT_CONFIG, findWrongOption, textOption, wholeNumber } from "./options.ts";
import { endByCommand, previewByCommand, readSelector, showToken } from "./tokens.ts";

export const ADMIN_USAGE = `npm run admin -- [--config FILE] COMMAND

  consent add --issuer ISS --subject SUB --actor SPIFFE_ID --target NAME [--target NAME …]
              --scope "SCOPE …" [--expires SECONDS]
                            records the consent of a subject and prints its id
  consent list [--issuer ISS] [--subject SUB]
                            prints consents, one line each
  consent withdraw ID       withdraws a consent and revokes the tokens issued under it
  explain FILE [--json]     prints what the token endpoint would answer to the question in FILE, and why;
                            exits with 0 if it would issue a token, with 3 if not
  audit [--log NAME] [--type TYPE] [--request ID] [--limit N] [--json]
                            prints all events, or the last N, one line each; with --request those that a request
                            caused, by its X-Request-Id
  audit --jti JTI [--json]  prints the events of a token and of its ancestors, oldest first
  audit retire NAME         ends the log of an instance that is gone for good; no instance can have this name again
  audit verify              verifies the hash chain of every log
  tokens end SELECTOR [--dry-run]
                            ends the tokens that the selector names, with every token that descends from them, on
                            every instance; with --dry-run prints them instead. The selector is one of --jti JTI,
                            --issuer ISS --subject SUB, --actor SPIFFE_ID, --client CLIENT_ID, --trust-domain NAME,
                            --issuer ISS, --rule ID, --consent ID, --everything [--up-to TIME]
  tokens show JTI           prints a token and its ancestors, oldest first, and whether it still stands

--config defaults to ${DEVELOPMENT_CONFIG}. --json prints each event as it is stored.
The audit trail records every use of "audit", "explain" and "tokens".`;

const OPTIONS = {
  config: textOption,
  issuer: textOption,
  subject: textOption,
  actor: textOption,
  target: textOption,
  scope: textOption,
  expires: textOption,
  log: textOption,
  type: textOption,
  jti: textOption,
  limit: textOption,
  request: textOption,
  client: textOption,
  "trust-domain": textOption,
  rule: textOption,
  consent: textOption,
  "up-to": textOption,
  everything: { type: "boolean" },
  "dry-run": { type: "boolean" },
  json: { type: "boolean" },
} as const;

const SELECTORS = [
  "jti",
  "issuer",
  "subject",
  "actor",
  "client",
  "trust-domain",
  "rule",
  "consent",
  "up-to",
] as const;

const COMMANDS: ReadonlyMap<string, readonly string[]> = new Map([
  ["consent add", ["issuer", "subject", "actor", "target", "scope", "expires"]],
  ["consent list", ["issuer", "subject"]],
  ["consent withdraw", []],
  ["explain", ["json"]],
  ["audit", ["log", "type", "request", "limit", "jti", "json"]],
  ["audit retire", []],
  ["audit verify", []],
  ["tokens end", [...SELECTORS, "everything", "dry-run"]],
  ["tokens show", []],
]);

/** Commands that take an argument beside their options. */
const ARGUMENTS: ReadonlyMap<string, string> = new Map([
  ["consent withdraw", "one id"],
  ["audit retire", "one name"],
  ["tokens show", "one jti"],
  ["explain", "one file"],
]);

export function parseAdmin(args: readonly string[]): Result<Command, string> {
  const parsed = attempt(() => parse(args));
  if (!parsed.ok) return parsed;
  const { values, positionals } = parsed.value;
  const length = positionals[0] === "explain" ? 1 : 2;
  const name = positionals.slice(0, length).join(" ");
  const allowed = COMMANDS.get(name);
  const [argument, ...more] = positionals.slice(length);
  if (allowed === undefined) return err(name === "" ? "no command given" : `unknown command "${name}"`);
  const expected = ARGUMENTS.get(name);
  if (more.length > 0 || (argument !== undefined) !== (expected !== undefined)) {
    return err(`"${name}" takes ${expected ?? "options only"}`);
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
    request,
    json = false,
  } = values;
  const configFile = config?.[0] ?? DEVELOPMENT_CONFIG;
  const command = (run: Run) => ok({ configFile, run });

  switch (name) {
    case "consent add": {
      if (!issuer?.[0] || !subject?.[0] || !actor?.[0] || !target || !scope?.[0]) {
        return err('"consent add" requires --issuer, --subject, --actor, --target and --scope');
      }
      const seconds = expires && wholeNumber(expires[0]);
      if (expires && seconds === undefined) return err("--expires is not a whole number of seconds");
      const consent = defined<NewConsent>({
        issuer: issuer[0],
        subject: subject[0],
        actor: actor[0],
        targets: target,
        scope: scope[0],
        expiresInSeconds: seconds,
      });
      return command((admin) => addConsent(admin, consent));
    }
    case "consent list":
      return command((admin) => listStored(admin, { issuer: issuer?.[0], subject: subject?.[0] }));
    case "consent withdraw":
      return command((admin) => withdrawStored(admin, argument ?? ""));
    case "explain":
      return command((admin) => explainFile(admin, argument ?? "", json));
    case "audit retire":
      return command((admin) => retireLog(admin, argument ?? ""));
    case "audit verify":
      return command(verifyLogs);
    case "tokens end": {
      const given = SELECTORS.map((one) => [one, values[one]?.[0]]);
      const selector = readSelector({ ...Object.fromEntries(given), everything: values.everything });
      if (!selector.ok) return selector;
      const run = values["dry-run"] ? previewByCommand : endByCommand;
      return command((admin) => run(admin, selector.value));
    }
    case "tokens show":
      return command((admin) => showToken(admin, argument ?? ""));
    default: {
      const token = jti?.[0];
      if (token !== undefined && (log ?? type ?? request ?? limit))
        return err("--jti can only be combined with --json");
      if (token !== undefined) return command((admin) => showLineage(admin, token, json));
      const last = limit && wholeNumber(limit[0]);
      if (limit && last === undefined) return err("--limit is not a whole number of events");
      return command((admin) =>
        showEvents(admin, { log: log?.[0], type: type?.[0], request: request?.[0], limit: last, json }),
      );
    }
  }
}

/** One of our random ids in 64 begins with a hyphen and must not be read as an option. */
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
