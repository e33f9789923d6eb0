"""New text and quoted text of a reply, kept apart: our own quoted words must not decide what a mail is about."""

import re

import msgspec

# The line above a quote ("On ... wrote:"), in the words of many mail programs; it may break over three lines.
_WROTE = re.compile(
    r"^[ \t>]*(?:On|Am|Le|El|Il|Em|Op|Den|Dne|W dniu|Dnia|Vào|Pada|På|Le|Le\s|Dana|Ha|Ti|На|В|Kl|Az|ons|tors|man|tis|"
    r"fre|lör|sön|\d{1,4}[./年-])[^\n]{0,200}(?:\n(?!\s*\n)[^\n]{1,200}){0,3}?"
    r"(?:wrote|schrieb|geschrieben|a écrit|écrit|escribió|escribio|ha scritto|escreveu|schreef|skrev|napsal|napisał|"
    r"написал|написала|пише|kirjoitti|"
    r"scrisse|scris|yazdı|写道|のメッセージ|さんは書きました|:)\s*:?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_STRICT_WROTE = re.compile(
    r"(?:wrote|schrieb|geschrieben|écrit|escribió|escribio|scritto|escreveu|schreef|skrev|napsal\w*|napisał\w*|"
    r"написал\w*|пише|kirjoitti|scrisse|"
    r"scris|yazdı|写道|書きました|メッセージ)\s*(?:<[^>\n]*>)?\s*[:：]?[ \t]*$|[\w.+-]+@[\w.-]+>?\s*[:：][ \t]*$",
    re.IGNORECASE,
)
_RULER = re.compile(
    r"^[ \t>]*[-_=*–—]{2,}\s*(?:Original (?:Message|Appointment)|Forwarded message|Ursprüngliche Nachricht|"
    r"Original-?Nachricht|Originalnachricht|"
    r"Weitergeleitete Nachricht|Message d'origine|Message original|Message transféré|Mensaje original|Mensaje "
    r"reenviado|Messaggio originale|"
    r"Mensagem original|Oorspronkelijk bericht|Oprindelig meddelelse|Ursprungligt meddelande|Opprinnelig melding|"
    r"Alkuperäinen viesti|"
    r"On [^\n]{4,120} wrote|Wiadomość oryginalna|Исходное сообщение|Пересылаемое сообщение|元のメッセージ|原始邮件|原始郵件|Reply "
    r"(?:above|message)|Antwort\w*)\s*[-_=*–—]*[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
# The block of headers that Outlook puts above a quote: a From line and, within a few lines, a date or subject line.
_FROM = r"(?:From|Von|De|Da|Fra|Från|Van|Od|От|Lähettäjä|Mittente|Remitente|Expéditeur|差出人|发件人|寄件者|보낸 사람)"
_THEN = (
    r"(?:Sent|Date|Subject|To|Gesendet|Datum|Betreff|An|Envoyé|Objet|À|Enviado|Enviada|Fecha|Asunto|Para|"
    r"Inviato|Oggetto|A|Data|Assunto|Verzonden|Onderwerp|Aan|Sendt|Dato|Emne|Til|Skickat|Ämne|Till|"
    r"Wysłano|Temat|Do|Отправлено|Дата|Тема|Кому|Lähetetty|Aihe|Vastaanottaja|送信日時|件名|宛先|发送时间|主题|收件人|日期)"
)
_BLOCK = re.compile(
    rf"^[ \t>*]*{_FROM}\s*:\*?[^\n]{{1,300}}\n(?:[^\n]{{0,300}}\n){{0,2}}?[ \t>*]*{_THEN}\s*:", re.MULTILINE
)
_SIGNATURE = re.compile(
    r"^(?:-- ?|__+|—|–{2,})[ \t]*$|^[ \t]*(?:Sent from my |Von meinem |Gesendet von |Envoyé de(?:puis)? mon |Enviado "
    r"desde mi |Inviato da(?:l mio)? |Enviado do meu |"
    r"Verzonden (?:met|vanaf) |Sendt fra min |Skickat från min |Lähetetty |Wysłane z |Отправлено с |Get Outlook for |"
    r"iPhoneから送信)[^\n]{0,80}$",
    re.MULTILINE,
)
_QUOTED_LINE = re.compile(r"^[ \t]*>")


class Reply(msgspec.Struct, frozen=True):
    """A mail's own words and the rest. `only_quotes`: nothing of its own was found, so `new` is the whole text."""

    new: str
    quoted: str = ""
    signature: str = ""
    only_quotes: bool = False


def split_reply(text: str) -> Reply:
    """The new text of a mail, what it quotes, and its signature."""
    cut = _quote_start(text)
    head, tail = text[:cut], text[cut:]
    new, quoted = _unquote(head)
    sign = _SIGNATURE.search(new)
    signature = new[sign.start() :].strip() if sign and new[: sign.start()].strip() else ""
    own = (new[: sign.start()] if sign and signature else new).strip()
    if not re.search(r"\w", own) and "\n>" in tail:  # answers written between the quoted lines
        own, between = _unquote(tail.partition("\n")[2])
        own, tail = own.strip(), between
    rest = "\n".join(part for part in (quoted.strip(), tail.strip()) if part)
    if not re.search(r"\w", own):
        return Reply(text.strip(), rest, only_quotes=bool(rest))
    return Reply(own, rest, signature)


def _quote_start(text: str) -> int:
    """Where the quoted rest of a mail begins; its end where there is none."""
    starts = [len(text)]
    for match in _WROTE.finditer(text[:200_000]):
        if _STRICT_WROTE.search(match[0]) and (match.end() < len(text) and _leads_quote(text[match.end() :])):
            starts.append(match.start())
            break
    starts.extend(found.start() for pattern in (_RULER, _BLOCK) if (found := pattern.search(text)))
    return min(starts)


def _leads_quote(rest: str) -> bool:
    """Whether what follows looks like a quote: marked lines, or an unmarked rest behind an empty line."""
    lines = [line for line in rest.split("\n")[:6] if line.strip()]
    return bool(lines) and (_QUOTED_LINE.match(lines[0]) is not None or rest.startswith(("\n\n", "\n \n", "\n")))


def _unquote(text: str) -> tuple[str, str]:
    """Lines of the sender's own, and lines marked as quoted (an answer may stand between them)."""
    own: list[str] = []
    quoted: list[str] = []
    for line in text.split("\n"):
        (quoted if _QUOTED_LINE.match(line) else own).append(line)
    return "\n".join(own), "\n".join(quoted)
