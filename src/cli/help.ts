/** The texts of --help and of a wrong command line, made from the table of commands. */

import { EXIT } from "../limits/process.ts";
import { COMMANDS, SERVE } from "./commands.ts";
import { type CommandForm, type CommandUsage, formsOf, optionsOf } from "./options.ts";

const WIDTH = 110;

/** Marks a heading, where the output is a terminal. */
export type Emphasis = (heading: string) => string;

/** Every command with its summary. */
export function overview(emphasis: Emphasis): string {
  const usages = [SERVE, ...COMMANDS.map(({ usage }) => usage)];
  return [
    emphasis("Usage:"),
    "  mandate --config FILE               starts the server",
    "  mandate COMMAND [ARGUMENTS …]",
    "  mandate COMMAND --help",
    "  mandate --version",
    "",
    emphasis("Commands:"),
    ...table(usages.map(({ name, summary }) => [name, summary])),
    "",
    "On this machine `mandate` is `npm run mandate --` in the folder of the project, or `node src/main.ts`; in a release it is `node bin/mandate.mjs`.",
    "",
    emphasis("Exit codes:"),
    ...table(EXIT_CODES),
  ].join("\n");
}

/** The forms of one command, as the usage lists them. */
export function synopsesOf(usage: CommandUsage, emphasis: Emphasis): string {
  return [emphasis("Usage:"), ...formsOf(usage).flatMap((form) => wrap(synopsis(usage, form), 2, 6))].join(
    "\n",
  );
}

export function helpOf(usage: CommandUsage, emphasis: Emphasis): string {
  const forms = formsOf(usage).flatMap((form) => [
    ...wrap(synopsis(usage, form), 2, 6),
    ...wrap(form.says, 10, 10),
  ]);
  const options = [...optionsOf(usage)].map(([name, { value = "", says }]) => {
    return [`--${name} ${value}`.trim(), says] as const;
  });
  return [
    ...[`mandate ${usage.name}: ${usage.summary}`, "", emphasis("Usage:"), ...forms, ""],
    ...(options.length === 0 ? [] : [emphasis("Options:"), ...table(options), ""]),
    ...usage.notes.flatMap((note) => wrap(note, 0, 0)),
    ...(usage.notes.length === 0 ? [] : [""]),
    emphasis("Example:"),
    `  ${usage.example}`,
  ].join("\n");
}

const EXIT_CODES = [
  [`${EXIT.done}`, "done, or allowed"],
  [`${EXIT.refused}`, "the answer is no: refused, denied, not found, changed, different"],
  [`${EXIT.unusable}`, "the command line is wrong, or a file that it names, or the configuration"],
  [`${EXIT.unavailable}`, "the store, or a server that was asked, cannot be reached or does not work"],
] as const;

function synopsis(usage: CommandUsage, { words, takes, requires, options }: CommandForm): string {
  const described = optionsOf(usage);
  const shown = (option: string): string => {
    const { value, many = false } = described.get(option) ?? {};
    return [`--${option}`, value, many ? "…" : undefined].filter((part) => part !== undefined).join(" ");
  };
  const parts = [
    ...words,
    ...takes,
    ...requires.map(shown),
    ...options.map((option) => `[${shown(option)}]`),
  ];
  return ["mandate", usage.name, ...parts].join(" ");
}

/** Lays out two columns, of which the second is wrapped. */
function table(rows: readonly (readonly [string, string])[]): readonly string[] {
  const width = 4 + Math.max(...rows.map(([name]) => name.length));
  return rows.flatMap(([name, text]) => {
    const [first = "", ...more] = wrap(text, width, width);
    return [`  ${name}`.padEnd(width) + first.trimStart(), ...more];
  });
}

/**
 * Breaks a text into lines of at most WIDTH characters where its words allow that; an option in brackets is one word.
 */
function wrap(text: string, firstIndent: number, indent: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.match(/\[--[^\][]*\]|\S+/g) ?? []) {
    const start = lines.length === 0 ? firstIndent : indent;
    const longer = line === "" ? " ".repeat(start) + word : `${line} ${word}`;
    if (line !== "" && longer.length > WIDTH) {
      lines.push(line);
      line = " ".repeat(indent) + word;
    } else line = longer;
  }
  return line === "" ? lines : [...lines, line];
}
