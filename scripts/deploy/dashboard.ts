/** The dashboard for Grafana: a panel for each family of metrics, as its type is read. */
import { FAMILIES } from "../../src/http/metrics.ts";

type Family = { type: string; labels: readonly string[]; help: string };

/** Constants, which no line shows. */
const LEFT_OUT: readonly string[] = ["mandate_build_info", "process_start_time_seconds"];
const [WIDTH, HEIGHT, IN_A_ROW] = [8, 8, 3];

type Query = { expr: string; legendFormat: string };

function queriesOf(name: string, { type, labels }: Family): readonly Query[] {
  const by = ["instance", ...labels];
  const legendFormat = by.map((label) => `{{${label}}}`).join(" ");
  if (type === "gauge") return [{ expr: name, legendFormat }];
  const rateOf = (part: string, around: readonly string[]): string =>
    `sum by (${around.join(", ")}) (rate(${name}${part}[$__rate_interval]))`;
  if (type === "counter") return [{ expr: rateOf("", by), legendFormat }];
  return ["0.5", "0.99"].map((rank) => ({
    expr: `histogram_quantile(${rank}, ${rateOf("_bucket", ["le", ...by])})`,
    legendFormat: `${rank} ${legendFormat}`,
  }));
}

const unitOf = (name: string, { type }: Family): string => {
  if (name.endsWith("_bytes")) return "bytes";
  if (/_(?:ends|since)_seconds$/.test(name)) return "dateTimeFromNow";
  if (name.endsWith("_seconds")) return "s";
  return type === "counter" ? "ops" : "short";
};

/** A Unix time in seconds, which Grafana takes in milliseconds. */
const scaled = (unit: string, query: Query): Query =>
  unit === "dateTimeFromNow" ? { ...query, expr: `1000 * ${query.expr}` } : query;

export function dashboard(): string {
  const shown = Object.entries<Family>(FAMILIES).filter(([name]) => !LEFT_OUT.includes(name));
  const panels = shown.map(([name, family], index) => {
    const unit = unitOf(name, family);
    const targets = queriesOf(name, family).map((query, at) => ({
      refId: String.fromCharCode(65 + at),
      ...scaled(unit, query),
    }));
    return {
      id: index + 1,
      type: "timeseries",
      title: name,
      description: family.help,
      datasource: { type: "prometheus", uid: "$prometheus" },
      gridPos: {
        h: HEIGHT,
        w: WIDTH,
        x: WIDTH * (index % IN_A_ROW),
        y: HEIGHT * Math.floor(index / IN_A_ROW),
      },
      fieldConfig: { defaults: { unit }, overrides: [] },
      targets,
    };
  });
  const variable = { name: "prometheus", type: "datasource", query: "prometheus", label: "Prometheus" };
  const whole = {
    title: "Mandate",
    description: "Written by npm run reference from src/http/metrics.ts.",
    schemaVersion: 39,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: { list: [variable] },
    panels,
  };
  return `${JSON.stringify(whole, null, 1)}\n`;
}
