/** Reads the Prometheus text format, version 0.0.4, and refuses what a strict reader may refuse. */
import assert from "node:assert/strict";

export type Exposed = { type: string; help: string; samples: ReadonlyMap<string, number> };

const HELP = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\\n]|\\[\\n])+)$/;
const TYPE = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)$/;
const LABEL = String.raw`[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"`;
const SAMPLE = new RegExp(
  `^([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{${LABEL}(?:,${LABEL})*\\})? (-?[0-9]+(?:\\.[0-9]+)?)$`,
);

/** Of a histogram. */
const PART = /^_(bucket|sum|count)$/;

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
      const family = families.get(current ?? "") ?? assert.fail(`${name} has no TYPE`);
      const [part = ""] = PART.exec(name.slice(current?.length)) ?? [];
      const own = family.type === "histogram" ? part !== "" : name === current;
      assert.ok(name.startsWith(current ?? "") && own, `${name} stands outside of its family`);
      const series = `${part}${labels}`;
      assert.ok(!family.samples.has(series), `twice: ${line}`);
      family.samples.set(series, Number(value));
    }
  }
  for (const [name, { type, samples }] of families) {
    assert.ok(samples.size > 0, `${name} has no sample`);
    if (type === "histogram") judgeHistogram(name, samples);
    // These labels have a meaning in histograms and summaries alone.
    else for (const one of samples.keys()) assert.doesNotMatch(one, /[{,](le|quantile)="/, name);
  }
  return families;
}

/** Buckets in order of their bounds, each with what is in those before it, the last with all; then sum and count. */
function judgeHistogram(name: string, samples: ReadonlyMap<string, number>): void {
  let [bound, below] = [Number.NEGATIVE_INFINITY, 0];
  for (const [series, value] of samples) {
    const [, part = "", rest = ""] = /^(_[a-z]+)(.*)$/.exec(series) ?? [];
    if (part !== "_bucket") continue;
    const [, le = ""] = /[{,]le="([^"]+)"\}$/.exec(rest) ?? assert.fail(`${series} of ${name} has no bound`);
    const next = le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le);
    assert.ok(next > bound && value >= below, `${name}: ${series} is out of order`);
    [bound, below] = [next, value];
    if (le !== "+Inf") continue;
    const labels = rest.replace(/,?le="[^"]+"\}$/, "}").replace("{}", "");
    assert.equal(samples.get(`_count${labels}`), value, `${name}: the count of ${labels}`);
    assert.ok(samples.has(`_sum${labels}`), `${name}: the sum of ${labels}`);
    [bound, below] = [Number.NEGATIVE_INFINITY, 0];
  }
  assert.equal(bound, Number.NEGATIVE_INFINITY, `${name} ends without its last bucket`);
}
