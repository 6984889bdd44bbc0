/** The page that tells a user what happened, and what they can do about it. */
import { html } from "./html.ts";
import type { Page } from "./page.ts";

export type NoticeView = {
  kind: keyof typeof TEXTS;
  status: number;
  /** PAGE-D-3: a way back to the client, by the host that it leads to. */
  back?: { href: string; host: string };
  /** After a sign-out: where to end the session at the provider too. */
  further?: { href: string; host: string };
  /** A way to go on. */
  onwards?: string;
};

const TEXTS = {
  request_invalid: [
    "The request is not valid",
    "The client sent a request that cannot be answered. Start again at the client.",
  ],
  client_unknown: [
    "The client is not known",
    "The client that sent you here is not known, or its page does not answer.",
  ],
  redirect_refused: [
    "The way back is not registered",
    "The client asked to be answered at a place that it did not register. Nothing was sent there.",
  ],
  request_gone: [
    "The request has ended",
    "The request took too long, or belongs to another browser. Start again at the client.",
  ],
  request_decided: [
    "You have decided already",
    "This request was answered before. Nothing more happens with it.",
  ],
  sign_in_failed: ["The sign-in did not succeed", "Nothing was given to the client."],
  sign_in_used: ["The sign-in was used already", "Go on with the request, or start again at the client."],
  form_refused: [
    "The form was not accepted",
    "It was not sent from our own page. Nothing was given to the client.",
  ],
  provider_down: ["The sign-in page does not answer", "Try again in a moment."],
  busy: ["Too many requests", "Try again in a moment."],
  signed_out: ["You are signed out", "What you allowed to clients stays until you take it back."],
} as const;

export function noticePage({ kind, status, back, further, onwards }: NoticeView): Page {
  const [title, text] = TEXTS[kind];
  return {
    status,
    title,
    body: html`
<h1>${title}</h1>
<p>${text}</p>
${further === undefined ? undefined : html`<p><a href="${further.href}">Sign out at <bdi>${further.host}</bdi> too</a></p>`}
${onwards === undefined ? undefined : html`<p><a class="button" href="${onwards}">Go on</a></p>`}
${back === undefined ? undefined : html`<p><a href="${back.href}">Back to <bdi>${back.host}</bdi></a></p>`}`,
  };
}
