/** One token request over TLS, prepared before the measurement so that sending it is cheap. */
import type { Agent } from "node:https";
import { request } from "node:https";
import { defined } from "../../src/result.ts";

export type Call = { headers: Record<string, string>; body: string };
export type Answer = { status: number; body: string };

export function makeCall(form: Record<string, string>, authorization?: string): Call {
  const body = new URLSearchParams(form).toString();
  const headers = defined<Call["headers"]>({
    "Content-Type": "application/x-www-form-urlencoded",
    "Content-Length": String(Buffer.byteLength(body)),
    Authorization: authorization,
  });
  return { headers, body };
}

export function post(agent: Agent, url: URL, { headers, body }: Call): Promise<Answer> {
  const { hostname, port, pathname } = url;
  return new Promise((resolve, reject) => {
    const sent = request({ agent, hostname, port, path: pathname, method: "POST", headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: text }));
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}
