/** The command line as data: what a command takes, and what was given. Nothing else of the project is loaded for it. */
import { parseArgs } from "node:util";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";

const DEVELOPMENT_CONFIG = "data/config.json";

/** `value` is the name of the option's value in the usage; without it the option is a flag. */
export type Option = {
  readonly value?: string;
  /** Whether the option may be given more than once. */
  readonly many?: true;
  readonly says: string;
};

/** One way to call a command: the words after its name, its arguments, and its options by name. */
export type CommandForm = {
  readonly words: string;
  readonly takes?: readonly string[];
  readonly requires?: readonly string[];
  readonly options?: readonly string[];
  readonly says: string;
};

export type CommandUsage = {
  readonly name: string;
  readonly summary: string;
  readonly forms: readonly CommandForm[];
  readonly options: Readonly<Record<string, Option>>;
  readonly notes: readonly string[];
  readonly example: string;
};

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
  const name = [usage.name, form.words].join(" ").trim();
  const rest = positionals.slice(wordsOf(form).length);
  const { takes = [] } = form;
  if (rest.length !== takes.length) {
    return err(`"${name}" takes ${takes.length === 0 ? "options only" : takes.join(" and ")}`);
  }
  const wrong = findWrongOption(usage, form, name, values);
  if (wrong !== undefined) return err(wrong);
  const texts = (option: string): readonly string[] | undefined => values[option]?.map(String);
  return ok({
    form: form.words,
    args: rest,
    one: (option) => texts(option)?.[0],
    all: texts,
    has: (option) => values[option] !== undefined,
  });
}

const wordsOf = ({ words }: CommandForm): readonly string[] => (words === "" ? [] : words.split(" "));

/** The form with the most words that begin the line; a form without words is that of a line that begins otherwise. */
function findForm(
  { name, forms }: CommandUsage,
  positionals: readonly string[],
): Result<CommandForm, string> {
  const fitting = forms.filter((form) => wordsOf(form).every((word, index) => positionals[index] === word));
  const [best] = fitting.toSorted((a, b) => wordsOf(b).length - wordsOf(a).length);
  const isUnknown = best === undefined || (best.words === "" && best.takes === undefined);
  if (isUnknown && positionals.length > 0) return err(`unknown command "${name} ${positionals.join(" ")}"`);
  if (best === undefined)
    return err(`"${name}" requires one of: ${forms.map(({ words }) => words).join(", ")}`);
  return ok(best);
}

/** The first problem with the options of a form. */
function findWrongOption(
  usage: CommandUsage,
  { requires = [], options = [] }: CommandForm,
  name: string,
  values: Values,
): string | undefined {
  const allowed = [...requires, ...options];
  for (const [option, given = []] of Object.entries(values)) {
    if (!allowed.includes(option)) return `"${name}" has no option --${option}`;
    // A repeated option is refused, because taking the last of two would silently ignore the first.
    if (!usage.options[option]?.many && given.length > 1) return `--${option} is given twice`;
    if (given.includes("")) return `--${option} is empty`;
  }
  const missing = requires.filter((option) => values[option] === undefined);
  const listed = requires.map((option) => `--${option}`).join(", ");
  return missing.length > 0 ? `"${name}" requires ${listed}` : undefined;
}

/** One in 64 of our random ids and key ids begins with a hyphen, and must not be read as an option. */
const HYPHEN_ID = /^-[\w-]{21}(?:[\w-]{21})?$/;

function parse({ options: described }: CommandUsage, args: readonly string[]) {
  const entries = Object.entries(described).map(([name, { value }]) => {
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

export function wholeNumber(digits = ""): number | undefined {
  return /^[1-9][0-9]{0,8}$/.test(digits) ? Number(digits) : undefined;
}
