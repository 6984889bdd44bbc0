/** The browser of a user of the demo: it keeps cookies and follows redirects. */
import { type Answer, send } from "../http-client.ts";

export type Visited = { url: string; answer: Answer };

/** Follows redirects until a page, or until a place that is neither the server's nor the provider's; keeps cookies. */
export function makeBrowser(ca: string): (url: string, form?: string) => Promise<Visited> {
  const jars = new Map<string, Map<string, string>>();
  return async (first, form) => {
    let url = first;
    let body = form;
    for (;;) {
      const { origin, protocol } = new URL(url);
      if (protocol !== "https:") return { url, answer: { status: 0, headers: {}, body: {}, text: "" } };
      const jar = jars.get(origin) ?? new Map<string, string>();
      jars.set(origin, jar);
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
      const headers = { cookie, "content-type": "application/x-www-form-urlencoded" };
      const answer: Answer = await send(
        url,
        body === undefined ? { ca, headers: { cookie } } : { ca, method: "POST", headers, body },
      );
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(String(answer.headers["set-cookie"] ?? "")) ?? [];
      if (name !== undefined && value !== undefined) jar.set(name, value);
      const { location } = answer.headers;
      if (answer.status !== 303 || location === undefined) return { url, answer };
      url = String(location);
      body = undefined;
    }
  };
}

/** Where the first form of a page is sent, and its hidden token. */
export function formOf({ answer: { text } }: Visited): { action: string; token: string } {
  const attribute = (pattern: RegExp): string => pattern.exec(text)?.[1]?.replaceAll("&#38;", "&") ?? "";
  return { action: attribute(/action="([^"]*)"/), token: attribute(/name="token" value="([^"]*)"/) };
}
