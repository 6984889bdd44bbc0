/** The dates of what the configuration brings along: certificates, authorities, secrets. */
import type { Config } from "../../config/config.ts";
import { type Dated, datedOf } from "../../config/dated.ts";
import { DAY_SECONDS, END_WARNING_DAYS } from "../../limits/process.ts";
import type { Finding } from "./finding.ts";

const REMEDIES: Record<Dated["kind"], string> = {
  certificate: "renew it; a running server takes the files into use",
  authority: "replace the file by that of the next authority; a running server takes it into use",
  secret: "give the client another secret, and add it here",
};

export const datesOf = (config: Config, nowSeconds: number): readonly Finding[] =>
  datedOf(config).map((one) => judge(one, nowSeconds));

function judge({ where, kind, beginSeconds, endSeconds }: Dated, nowSeconds: number): Finding {
  if (beginSeconds !== undefined && beginSeconds > nowSeconds) {
    const says = `the ${kind} is valid only from ${dateOf(beginSeconds)}: compare the clock of this machine, or wait`;
    return { level: "error", where, says };
  }
  const end = dateOf(endSeconds);
  if (endSeconds <= nowSeconds) {
    return { level: "error", where, says: `the ${kind} ended on ${end}: ${REMEDIES[kind]}` };
  }
  if (endSeconds <= nowSeconds + END_WARNING_DAYS * DAY_SECONDS) {
    const days = Math.floor((endSeconds - nowSeconds) / DAY_SECONDS);
    return {
      level: "warning",
      where,
      says: `the ${kind} ends on ${end}, in ${days} days: ${REMEDIES[kind]}`,
    };
  }
  return { level: "ok", where, says: `the ${kind} is valid until ${end}` };
}

const dateOf = (seconds: number): string => new Date(1000 * seconds).toISOString();
