/** The output of the demo: numbered steps, wrapped text and JSON. A failed check ends the demo. */

const WIDTH = 110;
let steps = 0;

export const part = (title: string): void => console.log(`\n=== ${title} ===`);
export const step = (title: string): void => console.log(`\n${++steps}. ${title}`);

export const print = (text: string): void => wrap(text, "");

/** Prints the output of a command; the rest of a wrapped line is indented. */
export const printOutput = (text: string): void => {
  for (const line of text.split("\n")) wrap(line, "    ");
};

function wrap(line: string, indent: string): void {
  let [row = "", ...words] = line.split(" ");
  for (const word of words) {
    if (row.length + word.length < WIDTH) {
      row += ` ${word}`;
    } else {
      console.log(`   ${row}`);
      row = `${indent}${word}`;
    }
  }
  console.log(`   ${row}`);
}

export function printJson(value: unknown): void {
  for (const line of JSON.stringify(value, null, 2).split("\n")) console.log(`     ${line}`);
}

export function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`check failed: ${what}`);
}
