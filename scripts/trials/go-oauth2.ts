/**
 * golang.org/x/oauth2, which finds out by itself how a client shows its secret: credentials, a code and its refresh, and
 * which error it tells when the server refuses.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  Browser,
  files,
  forPeople,
  NOTES,
  PRIVATE,
  PRIVATE_SECRET,
  request,
  SCOPES,
  verifierOf,
  WEB_REDIRECT,
} from "../../test/support/people.ts";
import { startProvider } from "../../test/support/provider.ts";
import { stop } from "../../test/support/stop.ts";
import { listenAt, makeWorld } from "../../test/support/world.ts";
import { freePorts } from "../server-process.ts";
import { missing } from "./spring.ts";

export const VERSION = "v0.38.0";
const API = "https://api.example";
const SECRET = "a secret of the trial, 1234567890";
const scopes = ["trips.read"];

const configurationAt = (issuer: string, port: number, base: ReturnType<typeof forPeople>) => ({
  ...base,
  issuer,
  listen: listenAt(port),
  clients: {
    [PRIVATE]: { method: "client_secret", secrets: [PRIVATE_SECRET], redirectUris: [WEB_REDIRECT] },
    either: { method: "client_secret", secrets: [SECRET], defaultTarget: API },
    basic: { method: "client_secret_basic", secrets: [SECRET], defaultTarget: API },
  },
  agents: { [PRIVATE]: { title: "Web app" } },
  targets: [...base.targets, { names: [API], scopes }],
  policies: [
    ...base.policies.map((rule) => ({ ...rule, clients: [PRIVATE], refresh: true })),
    { id: "machines", allow: "client_credentials", clients: ["either", "basic"], targets: [API], scopes },
  ],
});

/** Says in a line for each attempt what came: a token, or the error that the library tells, and after how many requests. */
const PROGRAM = `package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

var sent int

type counting struct{}

func (counting) RoundTrip(r *http.Request) (*http.Response, error) {
	sent++
	return http.DefaultTransport.RoundTrip(r)
}

func tell(name string, token *oauth2.Token, err error) {
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused):
		fmt.Println(name, refused.ErrorCode, sent)
	case err != nil:
		fmt.Println(name, err)
	default:
		fmt.Println(name, token.Type(), sent)
	}
	sent = 0
}

func main() {
	url, secret := os.Args[1]+"/token", os.Args[2]
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Transport: counting{}})
	styles := map[string]oauth2.AuthStyle{"auto": oauth2.AuthStyleAutoDetect, "header": oauth2.AuthStyleInHeader, "body": oauth2.AuthStyleInParams}
	for _, id := range []string{"either", "basic"} {
		for _, name := range []string{"auto", "header", "body"} {
			for _, scope := range []string{"trips.read", "trips.unknown"} {
				config := clientcredentials.Config{ClientID: id, ClientSecret: secret, TokenURL: url, Scopes: []string{scope}, AuthStyle: styles[name]}
				token, err := config.Token(ctx)
				tell(id+" "+name+" "+scope, token, err)
			}
		}
	}
	config := oauth2.Config{ClientID: os.Args[3], ClientSecret: os.Args[4], RedirectURL: os.Args[5], Endpoint: oauth2.Endpoint{TokenURL: url}}
	token, err := config.Exchange(ctx, os.Args[6], oauth2.VerifierOption(os.Args[7]))
	tell("code", token, err)
	for range 2 {
		token.Expiry = time.Now().Add(-time.Hour)
		before := token.AccessToken
		token, err = config.TokenSource(ctx, token).Token()
		tell(fmt.Sprint("refresh ", before != token.AccessToken), token, err)
	}
}
`;

/** With the requests that it sent; it learns the style of a client's first answer that is good. */
const EXPECTED = [
  "either auto trips.read Bearer 1",
  "either auto trips.unknown invalid_scope 2",
  "either header trips.read Bearer 1",
  "either header trips.unknown invalid_scope 1",
  "either body trips.read Bearer 1",
  "either body trips.unknown invalid_scope 1",
  "basic auto trips.read Bearer 1",
  "basic auto trips.unknown invalid_client 2",
  "basic header trips.read Bearer 1",
  "basic header trips.unknown invalid_scope 1",
  "basic body trips.read invalid_client 1",
  "basic body trips.unknown invalid_client 1",
  "code Bearer 1",
  "refresh true Bearer 1",
  "refresh true Bearer 1",
];

export async function* runGoOauth2(): AsyncIterable<string> {
  if (missing("go").length > 0) {
    yield "not run here: there is no go";
    return;
  }
  const [port = 0] = await freePorts(1);
  const issuer = `https://localhost:${port}`;
  const provider = await startProvider();
  const world = await makeWorld(configurationAt(issuer, port, forPeople(provider)), {
    files: files(provider),
  });
  try {
    const folder = join(world.folder, "go");
    mkdirSync(folder);
    writeFileSync(join(folder, "main.go"), PROGRAM);
    const go = (env: object, ...words: string[]): string => {
      const { status, stdout, stderr } = spawnSync("go", words, {
        ...{ cwd: folder, encoding: "utf8", env: { ...process.env, GOFLAGS: "-mod=mod", ...env } },
      });
      if (status !== 0) throw new Error(`go ended with ${status}: ${stderr.slice(-800)}`);
      return stdout;
    };
    go({}, "mod", "init", "example");
    go({}, "get", `golang.org/x/oauth2@${VERSION}`);
    go({}, "build", "-o", "client");
    const verifier = verifierOf();
    const asked = request(verifier, { scope: [...SCOPES, "offline_access"].join(" "), resource: NOTES });
    const code = await new Browser({ get: world.get, issuer }, provider).codeFor(asked);
    const words = [issuer, SECRET, PRIVATE, PRIVATE_SECRET, WEB_REDIRECT, code, verifier];
    const told = spawnSync(join(folder, "client"), words, {
      encoding: "utf8",
      env: { ...process.env, SSL_CERT_FILE: join(world.folder, "tls/ca.pem") },
    });
    const lines = told.stdout.trim().split("\n");
    const wrong = EXPECTED.flatMap((line, at) =>
      lines[at] === line ? [] : [`${lines[at]} in place of ${line}`],
    );
    if (wrong.length > 0) throw new Error(`${wrong.join("; ")} ${told.stderr.slice(-800)}`);
    yield `golang.org/x/oauth2 ${VERSION}: credentials by Basic and in the body, a code and two refreshes; errors as they are where either is taken`;
  } finally {
    await stop(world, provider);
  }
}
