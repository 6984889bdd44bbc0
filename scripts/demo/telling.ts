/** How the demo speaks: numbered scenes, indented lines, and the end of it where something is not as told. */

let scenes = 0;

export const scene = (title: string): void => console.log(`\n${++scenes}. ${title}`);
export const tell = (text: string): void => console.log(`   ${text}`);

export function show(value: unknown): void {
  for (const line of JSON.stringify(value, null, 2).split("\n")) console.log(`     ${line}`);
}

export function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`not as told: ${what}`);
}
