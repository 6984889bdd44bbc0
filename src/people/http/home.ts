/** GET of the issuer itself, of /favicon.ico and of unknown paths: to a browser a page that says what this is; to any other client, nothing. */
import { notFound } from "../../http/answers.ts";
import type { Handler } from "../../http/handler.ts";
import { chooseMediaType } from "../../spec/rfc9110.ts";
import { noticePage } from "../pages/notice-page.ts";
import type { PagePorts } from "../ports.ts";
import { onPage, pageAnswer } from "./page-answers.ts";

/** PAGE-D-29: a client that prefers HTML reads a page, and any other gets what stands at every unknown path. */
const forBrowsers =
  (kind: "home" | "page_unknown", status: number) =>
  (ports: PagePorts): Handler => {
    const page = onPage(ports, () => pageAnswer(ports, noticePage({ kind, status })));
    return (request, peer) => {
      const accept = request.headers.get("accept") ?? "";
      return chooseMediaType(accept, ["application/json", "text/html"]) === "text/html"
        ? page(request, peer)
        : notFound();
    };
  };

export const homeEndpoint = forBrowsers("home", 200);
export const unknownEndpoint = forBrowsers("page_unknown", 404);
