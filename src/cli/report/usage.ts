/** How `mandate report` is called. */
import { CONFIG, type CommandUsage } from "../options.ts";

export const REPORT: CommandUsage = {
  name: "report",
  summary: "writes offline pages: who acts for whom at what, and why requests were refused",
  forms: {
    "DIR [since until export from config]":
      "writes HTML pages, and the data behind them, into a new or empty folder; index.html is the first",
  },
  options: {
    "since TIME": "from this time on: in UTC, or days or hours before now, such as 12h (default: 30d)",
    "until TIME": "before this time",
    "export DIR": "the folder of an export in place of the store",
    "from FILE":
      "reads the trail from a copy of the database, or a standby, whose connection URL is in FILE; the look is recorded in the store of the configuration",
    ...CONFIG,
  },
  notes: [
    "The pages have no script and load nothing, so that the folder can be sent and opened anywhere. They name people and agents: keep them as you keep the trail, which is not verified for them (audit verify does).",
  ],
  example: "mandate report report-2026-11 --since 30d",
};
