/**
 * Texts on which a pattern that backtracks needs more steps than the text has characters: its beginning, one of its
 * characters or repeated parts many times, and an end that does not fit. Read off the pattern itself.
 */

type Node = {
  /** What one character is tested with; absent for a group or an assertion. */
  atom?: string;
  /** The alternatives of a group. */
  choices?: readonly (readonly Node[])[];
  min: number;
  max: number;
};

/** Far more than any count in a pattern that is meant as a bound. */
const MANY = 256;

const ATOM = /\[(?:\\.|[^\]\\])*\]|\\(?:[pPu]\{[^}]*\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)|./suy;
const OPENING = /\((?:\?(?:[:=!]|<[=!]|<\w+>))?/y;
const COUNT = /(?:([*+?])|\{(\d+)(,(\d*))?\})\??/y;

function parse(source: string): readonly (readonly Node[])[] {
  let at = 0;
  const take = (kind: RegExp): RegExpExecArray | null => {
    kind.lastIndex = at;
    const match = kind.exec(source);
    if (match !== null) at = kind.lastIndex;
    return match;
  };
  const count = (): Pick<Node, "min" | "max"> => {
    const [, sign, least, comma, most] = take(COUNT) ?? [];
    if (sign !== undefined) return { min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : MANY };
    if (least === undefined) return { min: 1, max: 1 };
    const max = comma === undefined ? least : most || MANY;
    return { min: Number(least), max: Number(max) };
  };
  const choices = (): Node[][] => {
    const found: Node[][] = [[]];
    for (;;) {
      const [opening] = take(OPENING) ?? [];
      if (opening !== undefined) {
        const inner = choices();
        at += 1;
        const counted = count();
        // What an assertion looks at is not part of the text.
        found.at(-1)?.push(/[=!]$/.test(opening) ? { min: 0, max: 0 } : { choices: inner, ...counted });
      } else if (at === source.length || source[at] === ")") {
        return found;
      } else if (source[at] === "|") {
        at += 1;
        found.push([]);
      } else {
        const [atom = ""] = take(ATOM) ?? [];
        if (atom !== "^" && atom !== "$") found.at(-1)?.push({ atom, ...count() });
      }
    }
  };
  return choices();
}

const SAMPLES = [
  ...Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)),
  ..."\u0130\u017f\u0301\u0e3f\u200b\u2028\u202e\u3000\ud7ff",
];

export function* slowInputs(pattern: RegExp): Generator<(size: number) => string> {
  const flags = pattern.flags.replace(/[gyd]/g, "");
  const parsed = parse(pattern.source);
  const atoms = new Map<string, readonly boolean[]>();
  const collect = (sequences: readonly (readonly Node[])[]): void => {
    for (const { atom, choices } of sequences.flat()) {
      if (choices !== undefined) collect(choices);
      if (atom === undefined || atoms.has(atom)) continue;
      const one = new RegExp(`^(?:${atom})$`, flags);
      atoms.set(
        atom,
        SAMPLES.map((sample) => one.test(sample)),
      );
    }
  };
  collect(parsed);
  // Characters that no part of the pattern tells apart are as good as one.
  const kinds = new Map(
    SAMPLES.map((sample, index) => [[...atoms.values()].map((fits) => fits[index]).join(), sample]),
  );
  const letters = [...kinds.values()];
  const wordOf = (sequence: readonly Node[]): string =>
    sequence
      .map(({ atom, choices, min }) => {
        const index = (atom === undefined ? undefined : atoms.get(atom))?.indexOf(true) ?? -1;
        return (choices === undefined ? (SAMPLES[index] ?? "") : wordOf(choices[0] ?? [])).repeat(min);
      })
      .join("");
  const [starts, pumps] = [new Set([""]), new Set(letters)];
  const walk = (sequences: readonly (readonly Node[])[], start: string): void => {
    for (const sequence of sequences) {
      for (const [index, { choices, max }] of sequence.entries()) {
        const before = start + wordOf(sequence.slice(0, index));
        if (choices !== undefined) walk(choices, before);
        if (max < MANY) continue;
        starts.add(before);
        for (const choice of choices ?? []) {
          pumps.add(wordOf(choice));
          pumps.add(wordOf(choice.map((node) => ({ ...node, min: Math.max(1, node.min) }))));
        }
      }
    }
  };
  walk(parsed, "");
  if (starts.size === 1 && !/[*+]|,\}/.test(pattern.source)) return;
  for (const one of [...letters, ...starts]) for (const other of letters) pumps.add(one + other);
  pumps.delete("");
  for (const start of starts) {
    for (const pump of pumps) {
      for (const end of ["", ...letters]) {
        yield (size) => start + pump.repeat(Math.ceil(size / pump.length)) + end;
      }
    }
  }
}

const timeOf = (pattern: RegExp, text: string): number => {
  pattern.lastIndex = 0;
  const startMs = performance.now();
  text.replace(pattern, "");
  return performance.now() - startMs;
};

/** The least of several, since a busy machine only adds to a time. */
const bestOf = (pattern: RegExp, text: string): number =>
  Math.min(...Array.from({ length: 7 }, () => timeOf(pattern, text)));

/** What is worth a second look, and how much longer a text of four times the length may take. */
const SUSPECT_MS = 0.1;
const GROWTH_MAX = 8;
/** Exponential growth shows at the first, cubic then, quadratic at the last: each before it takes long. */
const SIZES = [16, 24, 32, 48, 64, 128, 512, 1536];

/** A text on which the time of this pattern grows faster than the length; undefined without one. */
export function slowOn(pattern: RegExp): string | undefined {
  for (const input of slowInputs(pattern)) {
    for (const size of SIZES) {
      if (timeOf(pattern, input(size)) < SUSPECT_MS) continue;
      const [short, long] = [size / 4, size].map((one) => bestOf(pattern, input(one)));
      if (short === undefined || long === undefined || long < SUSPECT_MS) continue;
      if (long > GROWTH_MAX * short) return input(16);
    }
  }
  return undefined;
}
