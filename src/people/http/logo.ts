/** GET /logo/…: the logos of the operator's configuration, for the pages of this server alone. */
import { notFound } from "../../http/answers.ts";
import { type Handler, pathOf } from "../../http/handler.ts";
import { LOGO_CACHE_SECONDS } from "../../limits/people.ts";
import type { PeoplePorts } from "../ports.ts";

/** PAGE-D-41: what was checked at the start is served as that, and a browser takes it for nothing else. */
export function logoEndpoint({ settings }: Pick<PeoplePorts, "settings">): Handler {
  return (request) => {
    const { signIn, pages } = settings();
    const logo = signIn === undefined ? undefined : pages.logos.get(pathOf(request));
    return logo === undefined ? notFound() : { status: 200, headers: HEADERS, body: logo };
  };
}

const HEADERS = {
  "Content-Type": "image/png",
  "Cache-Control": `public, max-age=${LOGO_CACHE_SECONDS}, immutable`,
  "X-Content-Type-Options": "nosniff",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
};
