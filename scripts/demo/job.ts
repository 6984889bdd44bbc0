/** A job: an agent asks its user for one piece of work, within bounds; others take part; one click stops it, and nothing else. */
import { randomBytes } from "node:crypto";
import { type Answer, claimsOf, encodeForm } from "../http-client.ts";
import { formOf, makeBrowser } from "./browser.ts";
import { check, print, printJson, printOutput, step } from "./output.ts";

export type JobStage = {
  issuer: string;
  ca: string;
  workload(path: string): string;
  /** An exchange of Bob's token, or of the given one, by an agent. */
  exchange(agent: string, target: string, more: { token?: unknown; jobRequest?: string }): Promise<Answer>;
  /** Runs a command of the operator. */
  mandate(command: string): Promise<string>;
};

const TITLE = "Rebook the flight to Lisbon";

export async function playJob({ issuer, ca, workload, exchange, mandate }: JobStage): Promise<void> {
  const browse = makeBrowser(ca);
  const agent = `crew/lee-${randomBytes(4).toString("hex")}`;
  const booking = "agents/booking";

  step("A job: an agent asks Bob for one piece of work, with its bounds");
  const jobRequest = JSON.stringify({
    title: TITLE,
    targets: ["booking-agent", "crew-desk"],
    scopes: ["trips.read"],
    agents: [workload(booking)],
    maxTokens: 3,
  });
  print(`${agent} wants a token for the booking agent, in a job (mandate_job_request):`);
  printJson(JSON.parse(jobRequest));
  const asked = await exchange(agent, "booking-agent", { jobRequest });
  const link = String(asked.body.error_uri ?? "");
  check(asked.status === 400 && link !== "", `the user is asked: ${asked.text}`);
  const login = await browse(link);
  const page = await browse(`${login.url}&user=bob`);
  check(page.answer.text.includes(TITLE), "the page has the agent's words");
  check(page.answer.text.includes(workload(booking)), "the page names who else takes part");
  const { action, token } = formOf(page);
  const done = await browse(action, encodeForm({ token, all: "1", decision: "allow" }));
  check(done.answer.status === 200, "Bob approves the job");
  print("Bob opens the link, reads every bound, and approves. The agent asks again:");

  const first = await exchange(agent, "booking-agent", { jobRequest });
  check(first.status === 200, `the agent goes on: ${first.text}`);
  const job = String(first.body.mandate_job_id);
  const second = await exchange(booking, "crew-desk", { token: first.body.access_token });
  check(second.status === 200, `the booking agent takes part: ${second.text}`);
  const claims = claimsOf(second.body.access_token);
  check((claims.mandate_job as { id?: string }).id === job, "the token of the second agent is of the job");
  print("The booking agent takes part, by an exchange of that token. The job stands in every token of it:");
  printJson({
    sub: claims.sub,
    act: claims.act,
    aud: claims.aud,
    scope: claims.scope,
    mandate_job: claims.mandate_job,
  });
  const outside = await exchange(booking, "https://api.example", { token: first.body.access_token });
  check(outside.status === 400, "a target that the job does not name is refused");
  print("It gets nothing for a target outside the job, whatever its rules allow.");

  step("The operator sees the tree of the job; Bob stops it, and nothing else");
  const shown = await mandate(`jobs show ${job}`);
  check(shown.includes(String(claims.jti)), "the tree has the token of the second agent");
  printOutput(shown);
  const account = (await browse(`${issuer}/account`)).answer.text;
  const form = /name="token" value="([^"]*)"><input type="hidden" name="job" value="([^"]*)"/.exec(account);
  check(form?.[2] === job, "Bob's account page has the job");
  const stopped = await browse(`${issuer}/account/withdraw`, encodeForm({ token: form?.[1] ?? "", job }));
  check(stopped.answer.status === 200, "Bob stops the job");
  const refused = await exchange(booking, "crew-desk", { token: first.body.access_token });
  check(
    refused.body.mandate_job_error === "ended",
    `the agent is told that the job has ended: ${refused.text}`,
  );
  print("Bob stops it on the account page. The next exchange is refused, and says why to those of the job:");
  printJson(refused.body);
  print("What may still be accepted elsewhere, and until when (npm run mandate -- jobs show):");
  const report = await mandate(`jobs show ${job}`);
  check(report.includes(" partial "), "a token may still be taken offline");
  printOutput(
    report
      .split("\n")
      .filter((line) => !line.startsWith("  "))
      .slice(1)
      .join("\n"),
  );
}
