/** Reads the Prometheus text format, version 0.0.4, and refuses what a strict reader may refuse. */
import assert from "node:assert/strict";

export type Exposed = { type: string; help: string; samples: ReadonlyMap<string, number> };

const HELP = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\\n]|\\[\\n])+)$/;
const TYPE = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge)$/;
const LABEL = String.raw`[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"`;
const SAMPLE = new RegExp(
  `^([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{${LABEL}(?:,${LABEL})*\\})? (-?[0-9]+(?:\\.[0-9]+)?)$`,
);

/** Each family once, HELP before TYPE before its samples, all together; counters end in `_total`; no series twice. */
export function parseExposition(text: string): ReadonlyMap<string, Exposed> {
  assert.ok(text.endsWith("\n"), "the last line has no end");
  const families = new Map<string, { type: string; help: string; samples: Map<string, number> }>();
  let helped: { name: string; help: string } | undefined;
  let current: string | undefined;
  for (const line of text.slice(0, -1).split("\n")) {
    const [, helpName, help = ""] = HELP.exec(line) ?? [];
    const [, typeName, type = ""] = TYPE.exec(line) ?? [];
    const [, name = "", labels = "", value] = SAMPLE.exec(line) ?? [];
    if (helpName !== undefined) {
      assert.ok(!families.has(helpName), `a second HELP of ${helpName}`);
      helped = { name: helpName, help };
    } else if (typeName !== undefined) {
      assert.equal(helped?.name, typeName, `TYPE of ${typeName} without its HELP before`);
      assert.equal(type === "counter", typeName.endsWith("_total"), `the name of ${typeName}`);
      families.set(typeName, { type, help: helped.help, samples: new Map() });
      current = typeName;
    } else {
      assert.ok(value !== undefined, `not a line of the format: ${line}`);
      assert.equal(name, current, `${name} stands outside of its family`);
      const { samples } = families.get(name) ?? assert.fail(`${name} has no TYPE`);
      assert.ok(!samples.has(labels), `twice: ${line}`);
      samples.set(labels, Number(value));
    }
  }
  for (const [name, { samples }] of families) assert.ok(samples.size > 0, `${name} has no sample`);
  return families;
}
