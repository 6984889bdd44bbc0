/** The token endpoint of a process without the people's wing, whatever its settings say. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerTokenRequest } from "../../../src/flows/token.ts";
import { AT_TOKEN, formOf } from "../../support/flow.ts";
import { PUBLIC } from "../../support/people.ts";
import { openRefresh } from "../../support/refresh.ts";

const FORMS = [
  { grant_type: "authorization_code", code: "c", code_verifier: "v".repeat(43) },
  { grant_type: "refresh_token", refresh_token: `mrt_${"r".repeat(43)}` },
];
for (const form of FORMS) {
  test(`RFC6749-5.2-8 a process that has not loaded what reads ${form.grant_type} does not support it: the request is refused`, async (t) => {
    const { ports, people, client } = await openRefresh(t);
    const request = { id: "r", endpoint: "/token", source_ip: "192.0.2.1" };
    const asked = { client: client(PUBLIC), form: formOf(form), request };
    const reasonWith = async (of: typeof people | undefined) => {
      const answer = await answerTokenRequest(ports, asked, AT_TOKEN, of);
      return answer.ok ? "issued" : answer.error.failure.kind;
    };
    assert.deepEqual(
      [await reasonWith(undefined), await reasonWith(people)],
      ["grant_type_unsupported", "grant_refused"],
    );
  });
}
