/**
 * Collects what `mandate init` has to know: from the options, and on a terminal by asking for what they do not give.
 */
import * as v from "valibot";
import { ConfigFile } from "../../config/schema.ts";
import { err, ok, type Result } from "../../result.ts";
import { membersOf } from "../../setting.ts";
import { parseScope } from "../../spec/rfc6749.ts";
import { parseSpiffeId } from "../../spec/spiffe/id.ts";
import type { CommandArguments } from "../options.ts";

/** The app with which a first consent page is opened. */
export const APP = "first-app";

/** The person at the terminal ended the input instead of answering. */
export class InputEnded extends Error {
  override name = "InputEnded";
}

/** Asks the person at the terminal; resolves to the line that they typed, or throws InputEnded. */
export type Prompt = (question: string) => Promise<string>;

/** The options by name; one that was neither given nor answered is missing. */
export type Answers = Partial<Record<Option, string>>;
type Option = (typeof QUESTIONS)[number]["option"];

type Question = {
  option: string;
  asks: string;
  /** The member of the configuration whose description is shown. */
  member?: string;
  /** The options of which one must be set for this one to mean anything. */
  below?: readonly string[];
  /** What an empty answer means; without it, nothing is set. */
  otherwise?: string;
  /** Whether it must be set once the option above it is. */
  required?: true;
  /** Returns the problem with a value. */
  check?: (value: string) => string | undefined;
};

const isIssuer = (value: string): string | undefined => {
  const parsed = v.safeParse(ConfigFile.entries.issuer, value);
  return parsed.success ? undefined : parsed.issues[0].message;
};
const isPlace = (value: string): string | undefined =>
  Number(/^[^\s]+:([1-9]\d{0,4})$/.exec(value)?.[1] ?? Number.NaN) <= 65_535 ? undefined : "is not HOST:PORT";
const isScope = (value: string): string | undefined =>
  parseScope(value).ok ? undefined : "is not a list of scopes separated by single spaces";
/** The name of a client is the name of its file, too. */
const isCaller = (value: string): string | undefined =>
  parseSpiffeId(value).ok || /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(value)
    ? undefined
    : "is neither a SPIFFE ID nor a name of letters, digits, '.', '_' and '-'";

const QUESTIONS = [
  { option: "issuer", asks: "URL of this server", member: "issuer", required: true, check: isIssuer },
  { option: "listen", asks: "HOST:PORT to listen on, if not that of the URL", check: isPlace },
  {
    option: "store",
    asks: "sqlite, or a file that holds the URL of a PostgreSQL database",
    member: "store",
    otherwise: "sqlite",
  },
  {
    option: "provider",
    asks: "Issuer of your OpenID Provider; empty for none",
    member: "trustedIssuers",
    check: isIssuer,
  },
  {
    option: "client-id",
    below: ["provider"],
    asks: "client_id of this server at the provider, for users to sign in here; empty for no sign-in",
    member: "signIn.providers.*.clientId",
  },
  {
    option: "client-secret",
    below: ["client-id"],
    asks: "File with the secret of this server at the provider; empty to prove itself by a key",
    member: "signIn.providers.*.method",
  },
  {
    option: "trust-domain",
    asks: "Name of your SPIFFE trust domain; empty for none",
    member: "trustDomains",
  },
  {
    option: "bundle",
    below: ["trust-domain"],
    asks: "URL or file of its trust bundle",
    member: "trustDomains.*.bundle",
    required: true,
  },
  {
    option: "administrator",
    asks: "First administrator: a SPIFFE ID, or the name of a client that gets a secret",
    otherwise: "administrator",
    check: isCaller,
  },
  {
    option: "agent",
    asks: "First agent: a SPIFFE ID, or the name of a client; empty for none",
    below: ["provider"],
    check: isCaller,
  },
  {
    option: "agent-client-id",
    below: ["agent"],
    asks: "client_id of the agent's app at the provider, whose ID tokens the agent exchanges",
    required: true,
  },
  {
    option: "api",
    below: ["agent", "client-id"],
    asks: "The API for which agent and users' apps get tokens",
    member: "targets.*.names",
    otherwise: "first-api",
  },
  {
    option: "scope",
    below: ["agent", "client-id"],
    asks: "Their scopes at that API",
    member: "policies.*.scopes",
    otherwise: "read",
    check: isScope,
  },
] as const satisfies readonly Question[];

/** Without `prompt`, a required option that is missing is an error. An answer that is wrong is asked for again. */
export async function collectAnswers(
  given: CommandArguments,
  prompt: Prompt | undefined,
): Promise<Result<Answers, string>> {
  const answers: Record<string, string> = {};
  for (const question of QUESTIONS as readonly Question[]) {
    const { option, below, required, check, otherwise } = question;
    const value = given.one(option);
    if (below?.every((one) => answers[one] === undefined)) {
      if (value !== undefined) return err(`--${option} requires ${optionsOf(below)}`);
      continue;
    }
    const problem = value === undefined ? undefined : check?.(value);
    if (problem !== undefined) return err(`--${option} ${problem}`);
    const answered = value ?? (prompt && (await askFor(question, prompt))) ?? otherwise;
    if (answered !== undefined) answers[option] = answered;
    else if (required)
      return err(`--${option} is missing${below === undefined ? "" : ` beside ${optionsOf(below)}`}`);
  }
  if (answers.agent === answers.administrator)
    return err("--agent and --administrator are the same: give the agent another name");
  if ([answers.agent, answers.administrator].includes(APP))
    return err(`${APP} is the app with which a first page is opened: give another name`);
  return ok(answers);
}

const optionsOf = (names: readonly string[]): string => names.map((name) => `--${name}`).join(" or ");

async function askFor(
  { asks, member, otherwise, required, check }: Question,
  prompt: Prompt,
): Promise<string | undefined> {
  const shown = otherwise === undefined ? "" : ` [${otherwise}]`;
  const described = membersOf(ConfigFile).find(({ path }) => path === member);
  let before = described === undefined ? "" : `\n${described.text}\n`;
  for (;;) {
    const line = (await prompt(`${before}${asks}${shown}: `)).trim();
    const problem = line === "" ? required && "is required" : check?.(line);
    if (typeof problem !== "string") return line === "" ? undefined : line;
    before = `This ${problem}.\n`;
  }
}
