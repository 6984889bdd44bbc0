/** The command line as data: what a command takes, and what was given. Nothing else of the project is loaded for it. */
import { parseArgs } from "node:util";
import { err, ok, type Result } from "../result.ts";

const DEVELOPMENT_CONFIG = "data/config.json";

/** How a command is called, as its usage shows it. */
export type CommandUsage = {
  readonly name: string;
  readonly summary: string;
  /**
   * What each form does. It begins with its words and the names of its arguments, in capitals; then come the options that
   * it requires, and in brackets those that it takes, as in `initial-token create --class [uses json]`.
   */
  readonly forms: Readonly<Record<string, string>>;
  /** What each option says, by its name and that of its value; a flag has none, and `…` says that it may be repeated. */
  readonly options: Readonly<Record<string, string>>;
  readonly notes: readonly string[];
  readonly example: string;
};

export const CONFIG = { "config FILE": `the configuration (default: ${DEVELOPMENT_CONFIG})` };

/** `value` is absent for a flag; `many` says that the option may be given more than once. */
export type Option = { readonly value: string | undefined; readonly many: boolean; readonly says: string };

export const optionsOf = ({ options }: Pick<CommandUsage, "options">): ReadonlyMap<string, Option> =>
  new Map(
    Object.entries(options).map(([shown, says]) => {
      const [name = "", ...value] = shown.replace(/ …$/, "").split(" ");
      return [name, { value: value.join(" ") || undefined, many: shown.endsWith(" …"), says }];
    }),
  );

export const namesOf = (options: CommandUsage["options"]): string =>
  [...optionsOf({ options }).keys()].join(" ");

/** One way to call a command: the words after its name, its arguments, and its options by name. */
export type CommandForm = Readonly<Record<"words" | "takes" | "requires" | "options", readonly string[]>> & {
  readonly says: string;
};

export const formsOf = ({ forms }: CommandUsage): readonly CommandForm[] =>
  Object.entries(forms).map(([shown, says]) => {
    const [before = "", within = ""] = shown.split(/[[\]]/);
    const startingWith = (begin: RegExp) => before.split(" ").filter((part) => begin.test(part));
    return {
      words: startingWith(/^[a-z]/),
      takes: startingWith(/^[A-Z]/),
      requires: startingWith(/^--/).map((option) => option.slice(2)),
      options: within.match(/\S+/g) ?? [],
      says,
    };
  });

/** The arguments of a command, by the form of it (`keys list`, `keys rotate ALG`) that was typed. */
export type CommandArguments = {
  /** The words of the form. */
  readonly form: string;
  readonly args: readonly string[];
  one(option: string): string | undefined;
  all(option: string): readonly string[] | undefined;
  has(option: string): boolean;
};

export const configOf = (given: CommandArguments): string => given.one("config") ?? DEVELOPMENT_CONFIG;

type Values = Readonly<Record<string, readonly (string | boolean)[] | undefined>>;

export function readGiven(usage: CommandUsage, args: readonly string[]): Result<CommandArguments, string> {
  const parsed = attempt(() => parse(usage, args));
  if (!parsed.ok) return parsed;
  const { values, positionals } = parsed.value;
  const found = findForm(usage, positionals);
  if (!found.ok) return found;
  const form = found.value;
  const { words, takes } = form;
  const name = [usage.name, ...words].join(" ");
  const rest = positionals.slice(words.length);
  if (rest.length !== takes.length) {
    return err(`"${name}" takes ${takes.length === 0 ? "options only" : takes.join(" and ")}`);
  }
  const wrong = findWrongOption(usage, form, name, values);
  if (wrong !== undefined) return err(wrong);
  const texts = (option: string): readonly string[] | undefined => values[option]?.map(String);
  return ok({
    form: words.join(" "),
    args: rest,
    one: (option) => texts(option)?.[0],
    all: texts,
    has: (option) => values[option] !== undefined,
  });
}

/** The form with the most words that begin the line; a form without words is that of a line that begins otherwise. */
function findForm(usage: CommandUsage, positionals: readonly string[]): Result<CommandForm, string> {
  const forms = formsOf(usage);
  const fitting = forms.filter(({ words }) => words.every((word, index) => positionals[index] === word));
  const [best] = fitting.toSorted((a, b) => b.words.length - a.words.length);
  const isUnknown = best === undefined || (best.words.length === 0 && best.takes.length === 0);
  if (isUnknown && positionals.length > 0) {
    return err(`unknown command "${usage.name} ${positionals.join(" ")}"`);
  }
  if (best !== undefined) return ok(best);
  return err(`"${usage.name}" requires one of: ${forms.map(({ words }) => words.join(" ")).join(", ")}`);
}

/** The first problem with the options of a form. */
function findWrongOption(
  usage: CommandUsage,
  { requires, options }: CommandForm,
  name: string,
  values: Values,
): string | undefined {
  const allowed = [...requires, ...options];
  const described = optionsOf(usage);
  for (const [option, given = []] of Object.entries(values)) {
    if (!allowed.includes(option)) return `"${name}" has no option --${option}`;
    // A repeated option is refused, because taking the last of two would silently ignore the first.
    if (!described.get(option)?.many && given.length > 1) return `--${option} is given twice`;
    if (given.includes("")) return `--${option} is empty`;
  }
  const missing = requires.filter((option) => values[option] === undefined);
  const listed = requires.map((option) => `--${option}`).join(", ");
  return missing.length > 0 ? `"${name}" requires ${listed}` : undefined;
}

/** One in 64 of our random ids and key ids begins with a hyphen, and must not be read as an option. */
const HYPHEN_ID = /^-[\w-]{21}(?:[\w-]{21})?$/;

function parse(usage: CommandUsage, args: readonly string[]) {
  const entries = [...optionsOf(usage)].map(([name, { value }]) => {
    return [name, { type: value === undefined ? "boolean" : "string", multiple: true }] as const;
  });
  const options = Object.fromEntries(entries);
  const others: string[] = [];
  const ids: string[] = [];
  for (const arg of args) {
    const last = others.at(-1) ?? "";
    if (!HYPHEN_ID.test(arg)) others.push(arg);
    else if (options[last.slice(2)]?.type === "string") others.push(`${others.pop()}=${arg}`);
    else ids.push(arg);
  }
  const end = ids.length > 0 && !others.includes("--") ? ["--"] : [];
  const { values, positionals } = parseArgs({
    args: [...others, ...end, ...ids],
    options,
    allowPositionals: true,
  });
  return { values: values as Values, positionals };
}

/** Turns an exception into an error text, for calls that throw on wrong input (`parseArgs`, `readFileSync`). */
export function attempt<T>(work: () => T): Result<T, string> {
  try {
    return ok(work());
  } catch (error) {
    // The first line names the problem; the rest of parseArgs's text is general advice.
    return err(error instanceof Error ? (error.message.split(/\n|\. To specify/)[0] ?? "") : String(error));
  }
}

/** A whole number from 1 on; `what` ends the sentence that refuses another text. */
export function readWhole(
  given: CommandArguments,
  option: string,
  what = "from 1 on",
): Result<number | undefined, string> {
  const digits = given.one(option);
  const number = digits === undefined ? undefined : wholeNumber(digits);
  const isWrong = digits !== undefined && number === undefined;
  return isWrong ? err(`--${option} is not a whole number ${what}`) : ok(number);
}

export function wholeNumber(digits = ""): number | undefined {
  return /^[1-9][0-9]{0,8}$/.test(digits) ? Number(digits) : undefined;
}
