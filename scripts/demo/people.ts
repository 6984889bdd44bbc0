/** A user signs in, allows an app on a consent page, and an agent acts further with the token: as a browser would do it. */
import { createHash, randomBytes } from "node:crypto";
import { type Answer, claimsOf, encodeForm, postForm } from "../http-client.ts";
import { formOf, makeBrowser } from "./browser.ts";
import { check, print, printJson, step } from "./output.ts";

const APP = "travel-app";
const REDIRECT = "http://127.0.0.1:49152/callback";
const TARGET = "booking-agent";

/** What it needs of the first part: the server, and an agent that exchanges a token. */
export type PeopleStage = {
  issuer: string;
  ca: string;
  exchangeAsBooking(token: unknown): Promise<Answer>;
};

export async function playPeople({ issuer, ca, exchangeAsBooking }: PeopleStage): Promise<void> {
  const browse = makeBrowser(ca);
  const verifier = randomBytes(32).toString("base64url");

  step("A user allows an app: it sends Alice's browser here, and she signs in at the company's provider");
  const asked = {
    response_type: "code",
    client_id: APP,
    redirect_uri: REDIRECT,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    resource: "",
    scope: "trips.read trips.book",
    state: "from-the-app",
  };
  const login = await browse(`${issuer}/authorize?${encodeForm(asked)}`);
  const page = await browse(`${login.url}&user=alice`);
  check(page.answer.text.includes("Alice Example"), "the page says who she is");
  check(page.answer.text.includes('name="confirm"'), "the page warns of a program on her computer");

  print(
    "On the consent page she allows reading her trips, and not booking them, which the app asks for too.",
  );
  const { action, token } = formOf(page);
  const form = { token, scope: "trips.read", confirm: "1", decision: "allow" };
  const back = await browse(action, encodeForm(form));
  const { code = "", state, iss } = Object.fromEntries(new URL(back.url).searchParams);
  check(back.url.startsWith(REDIRECT), "her browser goes back to the app, with a code and our name");
  check(state === "from-the-app" && iss === issuer, "the state is the app's");

  print("Her browser brings a code to the app, which redeems it with the verifier that it alone knows:");
  const redeem = (): Promise<Answer> =>
    postForm(
      `${issuer}/token`,
      {
        grant_type: "authorization_code",
        code,
        redirect_uri: REDIRECT,
        code_verifier: verifier,
        client_id: APP,
      },
      { ca },
    );
  const issued = await redeem();
  const claims = claimsOf(issued.body.access_token);
  printJson(claims);
  check(claims.sub === "alice" && claims.client_id === APP, "the token speaks for Alice");
  check(claims.scope === "trips.read" && claims.aud === TARGET, "it permits what she allowed");

  print("The booking agent, for which the token is, exchanges it to act for her at the crew desk:");
  const exchanged = await exchangeAsBooking(issued.body.access_token);
  const further = claimsOf(exchanged.body.access_token);
  printJson(further);
  check(
    further.sub === "alice" && JSON.stringify(further.act).includes("booking"),
    "the crew desk learns user and agent",
  );

  print("The code is tried a second time, as by someone who saw it:");
  const again = await redeem();
  check(again.status === 400 && again.body.error === "invalid_grant", "it is refused");
  printJson(again.body);
  print("A code that comes twice also ends the token that it gave.");
}
