/** When a check is passed, and how that is told where it failed. */
import type { Context } from "./context.ts";
import type { Answer } from "./http.ts";
import type { Json } from "./keys.ts";
import type { Verdict } from "./types.ts";

export const that = (
  wants: string,
  holds: (answer: Answer, c: Context) => boolean | Promise<boolean>,
): Verdict => ({ wants, holds });

/** An error answer of OAuth, of which no token comes. */
const isRefusal = ({ status, body }: Answer): boolean =>
  status >= 400 && status < 500 && typeof body.error === "string" && body.access_token === undefined;

/** Refused with one of these codes. */
export const refused = (...codes: readonly string[]): Verdict =>
  that(
    `a status of 4xx with "error" ${codes.map((code) => `"${code}"`).join(" or ")}`,
    (answer) => isRefusal(answer) && codes.includes(String(answer.body.error)),
  );

/** Refused for its certificate; a listener may do that in the handshake. */
export const refusedCertificate: Verdict = that(
  'a status of 4xx with "error" "invalid_client", or no handshake',
  (answer) =>
    answer.fault === undefined
      ? isRefusal(answer) && answer.body.error === "invalid_client"
      : answer.status === 0,
);

/** Refused, whatever the code. */
export const notGiven: Verdict = that('a status of 4xx with an "error"', isRefusal);

/** The caller got nothing; an answer of 401 may be without a body. */
export const nothing: Verdict = that(
  "a status of 4xx without a token",
  ({ status: got, body }) => got >= 400 && got < 500 && body.access_token === undefined,
);

export const status = (...wanted: readonly number[]): Verdict =>
  that(`the status ${wanted.join(" or ")}`, (answer) => wanted.includes(answer.status));

export const given: Verdict = that(
  'the status 200 with "access_token" and "token_type"',
  ({ status: got, body }) =>
    got === 200 && typeof body.access_token === "string" && typeof body.token_type === "string",
);

/** A good answer, of whose members something holds. */
export const answers = (wants: string, holds: (body: Json, answer: Answer, c: Context) => boolean): Verdict =>
  that(`the status 200 and ${wants}`, (answer, c) => answer.status === 200 && holds(answer.body, answer, c));

/** A token, of whose claims something holds. */
export const issues = (
  wants: string,
  holds: (claims: Json, c: Context, answer: Answer) => boolean,
): Verdict =>
  that(`the status 200 with a token in which ${wants}`, async (answer, c) => {
    if (answer.status !== 200 || typeof answer.body.access_token !== "string") return false;
    return holds(await c.read(answer.body.access_token), c, answer);
  });

export const isActive: Verdict = answers('"active": true', ({ active }) => active === true);
/** RFC 7662 2.2: nothing else is told. */
export const isInactive: Verdict = answers(
  'nothing but "active": false',
  (body) => body.active === false && Object.keys(body).length === 1,
);

/** Of a text, or of a list, as which some servers write it. */
export const scopesOf = (scope: unknown): readonly string[] =>
  (Array.isArray(scope) ? scope.map(String) : typeof scope === "string" ? scope.split(" ") : [])
    .filter((one) => one !== "")
    .sort();
export const has = (value: unknown, one: unknown): boolean =>
  Array.isArray(value) ? value.includes(one) : value === one;
