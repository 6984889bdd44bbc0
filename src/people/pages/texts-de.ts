/** The texts of the pages in German. */
import { html } from "./html.ts";
import type { Texts } from "./texts.ts";

const inDays = (days: number): string => (days === 1 ? "1 Tag" : `${days} Tage`);

export const de: Texts = {
  language: "de",
  consentTitle: (client) => `${client} erlauben?`,
  consentHeading: (client) => html`${client} bittet um Zugriff`,
  selfRegisteredClient: "Ein Programm, das sich selbst angemeldet hat,",
  claimedName: (name) => html`Es nennt sich „${name}“.`,
  reasonGiven: (words) => html`Begründung: „${words}“`,
  answeredForBy: (owner, contact) =>
    `Verantwortlich: ${owner}${contact === undefined ? "" : ` (${contact})`}.`,
  askHeading: (agent) => html`${agent} möchte für Sie handeln`,
  askWhy:
    "Ein Agent, der für Sie arbeitet, kommt nur weiter, wenn Sie es erlauben. Wenn Sie nicht wissen, warum er fragt, lehnen Sie ab.",
  agentIdentity: "Der Agent",
  worksFor: "Wer für wen arbeitet",
  you: "Sie",
  thisAgent: "dieser Agent",
  beforeYouGoOn: "Bevor Sie fortfahren",
  selfRegistered: (date) =>
    `Dieses Programm hat sich am ${date} selbst angemeldet. Sein Name wurde nicht geprüft.`,
  loopback:
    "Die Antwort geht an ein Programm auf diesem Computer. Jedes Programm darauf könnte das sein, das sie erhält.",
  onlyIfYou: "Fahren Sie nur fort, wenn Sie dies gerade selbst begonnen haben.",
  redirectDiffers: (redirect, client) =>
    html`Die Antwort geht an ${redirect}, also an einen anderen Host als ${client}.`,
  confirm: "Ich habe dies gerade selbst begonnen",
  unconfirmedTitle: "Ein Häkchen fehlt",
  unconfirmed:
    "Setzen Sie das Häkchen bei „Ich habe dies gerade selbst begonnen“ und noch einmal bei dem, was Sie erlauben. Oder lehnen Sie ab.",
  signedInAs: "Sie sind angemeldet als",
  notYou: "Nicht Sie?",
  answerGoesTo: "Die Antwort geht an",
  onThisComputer: "auf diesem Computer",
  lastsUntil: "Was Sie erlauben, gilt bis",
  goesOnFor: "Ohne Sie wieder zu fragen, arbeitet es weiter für",
  hours: (hours) => (hours === 1 ? "1 Stunde" : `${hours} Stunden`),
  goOnWithoutMe: ({ days, idleDays, hours }) =>
    `${inDays(days)} statt ${hours === 1 ? "1 Stunde" : `${hours} Stunden`} weiterzuarbeiten, ohne Sie wieder zu fragen, solange es alle ${inDays(idleDays)} benutzt wird`,
  timeLeft: "Zeit für die Entscheidung",
  minutes: (count) => (count === 1 ? "1 Minute" : `${count} Minuten`),
  moreTime: "Mehr Zeit",
  asksTo: (target) => html`Bei ${target} bittet es darum`,
  tickHint:
    "Setzen Sie Häkchen bei dem, was Sie erlauben. Sonst wird nichts gegeben. Ohne Häkchen lehnen Sie ab.",
  everything: "All dies",
  agents: "Damit dürfen diese weiter in Ihrem Namen handeln, ohne Sie noch einmal zu fragen:",
  refuse: "Ablehnen",
  allow: "Erlauben",
  signInTitle: "Anmelden",
  signInHint: "Wählen Sie, wo Sie Ihr Konto haben.",
  goOn: "Fortfahren",
  signOut: "Abmelden",
  signOutAt: (provider) => html`Auch bei ${provider} abmelden`,
  backTo: (host) => html`Zurück zu ${host}`,
  takenBackAt: (account) => html`Was Sie erlauben, können Sie jederzeit zurücknehmen: ${account}`,
  accountTitle: "Ihr Konto",
  allowedHeading: "Was Sie erlaubt haben",
  nothingAllowed: "Sie erlauben zurzeit keinem Programm etwas.",
  takeBackHint: (minutes) =>
    `Was Sie zurücknehmen, endet hier sofort, mit allem, was darunter gegeben wurde. Ein Dienst, der selbst prüft, bemerkt es vielleicht erst bis zu ${minutes === 1 ? "1 Minute" : `${minutes} Minuten`} später.`,
  mayAt: (target) => html`Darf bei ${target}`,
  allowedSince: "Erlaubt seit",
  allowedUntil: "Gilt bis",
  untilTakenBack: "zur Rücknahme",
  lastUsed: "Zuletzt benutzt",
  noUse: "Keine Nutzung verzeichnet",
  noUseSince: (date) => `Keine Nutzung verzeichnet seit ${date}`,
  goesOn: "Läuft weiter, während Sie weg sind",
  goesOnUntil: (since, used, until) => `Seit ${since}, zuletzt benutzt am ${used}, bis ${until}.`,
  goesOnIdle: (date) => `Unbenutzt endet es am ${date}.`,
  reused: (date) =>
    `Am ${date} wurde ein Zugang dieses Programms beendet, weil er von zwei Stellen aus benutzt wurde: Eine Kopie könnte gestohlen sein. Wenn Sie das Programm benutzen, melden Sie sich dort neu an.`,
  renewedElsewhere:
    "Zwei Netze haben denselben Zugang dieses Programms binnen Sekunden benutzt. Vielleicht haben Sie das Netz gewechselt, vielleicht ist eine Kopie gestohlen: Wenn Sie nicht wissen, warum, nehmen Sie zurück, was Sie erlaubt haben.",
  takeBack: "Zurücknehmen",
  takeAllHeading: "Alles zurücknehmen",
  takeAllConfirm: "Ja, alles, was ich irgendeinem Programm erlaubt habe",
  takeAll: "Alles zurücknehmen",
  takeAllUnconfirmed:
    "Setzen Sie das Häkchen bei „Ja, alles, was ich irgendeinem Programm erlaubt habe“, und wählen Sie noch einmal. Es wurde nichts zurückgenommen.",
  moreAllowed: "Mehr von dem, was Sie erlaubt haben",
  firstAllowed: "Was Sie erlaubt haben, von Anfang an",
  doneHeading: "Was in Ihrem Namen geschah",
  doneHint: "Das Neueste zuerst. Zeiten sind UTC.",
  nothingDone: "Es ist nichts verzeichnet.",
  daysLegend: "Bestimmte Tage zeigen",
  firstDay: "Erster Tag",
  lastDay: "Letzter Tag",
  showDays: "Zeigen",
  dayWrongTitle: "Ein Tag ist ungültig",
  dayWrong:
    "Schreiben Sie jeden Tag wie 2027-01-31, den ersten nicht nach dem letzten, oder lassen Sie ihn leer.",
  older: "Ältere Einträge",
  newest: "Neueste Einträge",
  wayOfAgents: "Über, in dieser Reihenfolge",
  toldBy: (issuer) => html`wie ${issuer} angibt`,
  doneAt: (target) => html`Bei ${target}`,
  done: {
    token_given: (agent) => html`${agent} erhielt Zugang zu dem, was Sie erlaubt haben.`,
    acted: (agent) => html`${agent} handelte in Ihrem Namen.`,
    acted_as_you: (agent) => html`${agent} handelte wie Sie selbst, ohne genannt zu werden.`,
    grant_redeemed: (agent) =>
      html`${agent} kam von einer anderen Firma mit einer Erlaubnis in Ihrem Namen und erhielt Zugang.`,
    refused: (agent) => html`${agent} wollte in Ihrem Namen handeln und wurde abgelehnt.`,
    you_refused: (agent) => html`Sie haben ${agent} abgelehnt.`,
    allowed: (agent) => html`Sie haben ${agent} Rechte gegeben.`,
    allowed_by_others: (agent) => html`Ein Administrator hat ${agent} in Ihrem Namen Rechte gegeben.`,
    taken_back: (agent) => html`Sie haben die Rechte von ${agent} zurückgenommen.`,
    taken_back_by_others: (agent) => html`Ein Administrator hat die Rechte von ${agent} zurückgenommen.`,
    renewed_elsewhere: (agent) =>
      html`${agent} hat denselben Zugang binnen Sekunden aus zwei Netzen benutzt. Wenn Sie nicht wissen, warum, nehmen Sie zurück, was Sie erlaubt haben.`,
    ended: () => html`Was Programme für Sie hatten, wurde beendet.`,
    signed_in: () => html`Sie haben sich hier angemeldet.`,
    signed_out: () => html`Sie haben sich hier abgemeldet.`,
  },
  notices: {
    request_invalid: {
      title: "Die Anfrage ist ungültig",
      text: "Das Programm, von dem Sie kommen, hat eine Anfrage gestellt, die nicht beantwortet werden kann. Es hat nichts erhalten. Beginnen Sie dort neu; kommt diese Seite wieder, sagen Sie es dem Hersteller.",
    },
    client_unknown: {
      title: "Das Programm ist hier nicht bekannt",
      text: "Das Programm, von dem Sie kommen, ist nicht angemeldet, oder die Seite, die es beschreibt, antwortet nicht. Es hat nichts erhalten.",
    },
    client_unreachable: {
      title: "Die Seite des Programms antwortet nicht",
      text: "Die Seite, die das Programm beschreibt, von dem Sie kommen, ist gerade nicht erreichbar. Es hat nichts erhalten. Versuchen Sie es gleich noch einmal.",
    },
    redirect_refused: {
      title: "Der Rückweg ist nicht angemeldet",
      text: "Das Programm, von dem Sie kommen, will die Antwort an einem Ort, den es nicht angemeldet hat. Dorthin wurde nichts gesendet.",
    },
    request_gone: {
      title: "Die Anfrage ist beendet",
      text: "Sie hat zu lange gedauert oder wurde in einem anderen Browser begonnen. Beginnen Sie neu bei dem Programm, von dem Sie kommen.",
    },
    request_decided: {
      title: "Sie haben schon entschieden",
      text: "Diese Anfrage wurde bereits beantwortet. Es geschieht nichts weiter, und Sie können die Seite schließen.",
    },
    sign_in_failed: {
      title: "Die Anmeldung ist nicht gelungen",
      text: "Das Programm, von dem Sie kommen, hat nichts erhalten. Sie können es noch einmal versuchen.",
    },
    sign_in_used: {
      title: "Diese Anmeldung wurde schon benutzt",
      text: "Fahren Sie mit der Anfrage fort, oder beginnen Sie neu bei dem Programm, von dem Sie kommen.",
    },
    form_refused: {
      title: "Das Formular wurde nicht angenommen",
      text: "Es kam nicht von unserer eigenen Seite, oder diese war veraltet. Es wurde nichts gegeben.",
    },
    session_over: {
      title: "Sie sind nicht mehr angemeldet",
      text: "Es wurde nichts geändert. Melden Sie sich wieder an, und wiederholen Sie, was Sie wollten.",
    },
    taken_back_before: {
      title: "Das wurde schon zurückgenommen",
      text: "Es ist nicht mehr erlaubt, und es bleibt nichts zu tun.",
    },
    provider_down: {
      title: "Die Anmeldeseite antwortet nicht",
      text: "Die Anmeldeseite Ihrer Firma ist gerade nicht erreichbar. Versuchen Sie es gleich noch einmal.",
    },
    fault: {
      title: "Hier ist etwas schiefgegangen",
      text: "Dieser Server konnte nicht antworten, und der Fehler liegt nicht bei Ihnen. Kein Programm hat etwas erhalten. Versuchen Sie es noch einmal; kommt diese Seite wieder, sagen Sie es dem Betreiber dieses Servers.",
    },
    busy: {
      title: "Zu viele Anfragen",
      text: "Es ist gerade mehr zu tun, als möglich ist. Versuchen Sie es gleich noch einmal.",
    },
    unavailable: {
      title: "Das kann im Moment nicht beantwortet werden",
      text: "Ob gespeichert wurde, was Sie getan haben, ist nicht bekannt. Tun Sie in einem Moment dasselbe noch einmal: Es geschieht nicht zweimal.",
    },
    ask_gone: {
      title: "Hier ist nichts zu entscheiden",
      text: "Der Link ist für eine andere Person, oder seine Zeit ist um. Es wurde nichts gegeben. Wenn Sie erwartet haben, gefragt zu werden, lassen Sie den Agenten es noch einmal versuchen, und melden Sie sich als die Person an, für die er arbeitet.",
    },
    ask_allowed: {
      title: "Sie haben es erlaubt",
      text: "Der Agent kommt weiter, sobald er es noch einmal versucht. Sie können die Seite schließen.",
    },
    ask_refused: {
      title: "Sie haben abgelehnt",
      text: "Der Agent hat nichts erhalten. Sie können die Seite schließen.",
    },
    signed_out: {
      title: "Sie sind abgemeldet",
      text: "Was Sie Programmen erlaubt haben, bleibt erlaubt. Bei Ihrer Firma sind Sie vielleicht noch angemeldet.",
    },
  },
};
