"""The replies that `rules` can write: a receipt in the sender's language that promises nothing it cannot know.

Every language has a greeting (with and without a name), an opening and a request for each kind of mail, a closing line.
Rules know no facts: where the knowledge base has a passage it is quoted, the rest is left to the person who reviews.
"""

import msgspec


class Phrases(msgspec.Struct, frozen=True):
    """Everything that `rules` says in one language. `{name}` and `{topic}` are filled in."""

    greeting: str
    greeting_nameless: str
    thanks: str
    about: str
    complaint: str
    urgent: str
    information: str
    passage: str
    next_step: str
    closing: str
    topics: dict[str, str]


LANGUAGES: dict[str, Phrases] = {
    "en": Phrases(
        "Hello {name},", "Hello,", "Thank you for your message.", "We have received your {topic} and are looking "
            "into it.",
        "We are sorry about your experience. Your {topic} has reached a person who will look into it.",
        "We have marked your message as urgent.", "Thank you for letting us know.", "From our documentation:",
        "You will hear from us as soon as we have checked the details.", "Kind regards",
        {"billing": "billing question", "sales": "enquiry", "feature_request": "suggestion", "complaint": "complaint",
         "support": "request", "other": "message"},
    ),
    "de": Phrases(
        "Guten Tag {name},", "Guten Tag,", "vielen Dank für Ihre Nachricht.", "Wir haben {topic} erhalten und "
            "kümmern uns darum.",
        "Es tut uns leid, dass Sie diese Erfahrung gemacht haben. {topic} liegt nun einem Menschen vor, der sich "
        "darum kümmert.",
        "Wir haben Ihre Nachricht als dringend vermerkt.", "Danke für die Information.", "Aus unserer Dokumentation:",
        "Sie hören von uns, sobald wir die Einzelheiten geprüft haben.", "Mit freundlichen Grüßen",
        {"billing": "Ihre Frage zur Abrechnung", "sales": "Ihre Anfrage", "feature_request": "Ihren Vorschlag",
         "complaint": "Ihre Beschwerde", "support": "Ihr Anliegen", "other": "Ihre Nachricht"},
    ),
    "fr": Phrases(
        "Bonjour {name},", "Bonjour,", "Merci pour votre message.", "Nous avons bien reçu {topic} et nous nous en "
            "occupons.",
        "Nous sommes désolés de cette situation. Une personne va examiner {topic}.",
        "Nous avons noté que votre message est urgent.", "Merci pour cette information.",
            "Extrait de notre documentation :",
        "Nous reviendrons vers vous dès que nous aurons vérifié les détails.", "Cordialement",
        {"billing": "votre question de facturation", "sales": "votre demande", "feature_request": "votre suggestion",
         "complaint": "votre réclamation", "support": "votre demande", "other": "votre message"},
    ),
    "es": Phrases(
        "Hola, {name}:", "Hola:", "Gracias por su mensaje.", "Hemos recibido {topic} y lo estamos revisando.",
        "Lamentamos lo ocurrido. Una persona revisará {topic}.", "Hemos marcado su mensaje como urgente.",
        "Gracias por la información.", "De nuestra documentación:",
        "Le escribiremos en cuanto hayamos comprobado los detalles.", "Un saludo",
        {"billing": "su consulta de facturación", "sales": "su consulta", "feature_request": "su sugerencia",
         "complaint": "su reclamación", "support": "su solicitud", "other": "su mensaje"},
    ),
    "it": Phrases(
        "Buongiorno {name},", "Buongiorno,", "grazie per il suo messaggio.", "Abbiamo ricevuto {topic} e ce ne "
            "stiamo occupando.",
        "Ci dispiace per l'accaduto. Una persona esaminerà {topic}.", "Abbiamo segnato il suo messaggio come urgente.",
        "Grazie per l'informazione.", "Dalla nostra documentazione:",
        "Le scriveremo appena avremo verificato i dettagli.", "Cordiali saluti",
        {"billing": "la sua domanda sulla fatturazione", "sales": "la sua richiesta", "feature_request":
            "il suo suggerimento",
         "complaint": "il suo reclamo", "support": "la sua richiesta", "other": "il suo messaggio"},
    ),
    "pt": Phrases(
        "Olá, {name},", "Olá,", "Obrigado pela sua mensagem.", "Recebemos {topic} e estamos a tratar do assunto.",
        "Lamentamos o sucedido. Uma pessoa vai analisar {topic}.", "Marcámos a sua mensagem como urgente.",
        "Obrigado pela informação.", "Da nossa documentação:", "Entraremos em contacto assim que verificarmos os "
            "detalhes.",
        "Com os melhores cumprimentos",
        {"billing": "a sua questão de faturação", "sales": "o seu pedido", "feature_request": "a sua sugestão",
         "complaint": "a sua reclamação", "support": "o seu pedido", "other": "a sua mensagem"},
    ),
    "nl": Phrases(
        "Beste {name},", "Beste klant,", "Bedankt voor uw bericht.", "We hebben {topic} ontvangen en gaan ermee aan "
            "de slag.",
        "Het spijt ons dat dit is gebeurd. Een medewerker bekijkt {topic}.", "We hebben uw bericht als dringend "
            "gemarkeerd.",
        "Bedankt voor de informatie.", "Uit onze documentatie:", "U hoort van ons zodra we de details hebben "
            "nagekeken.",
        "Met vriendelijke groet",
        {"billing": "uw vraag over de factuur", "sales": "uw aanvraag", "feature_request":
            "uw suggestie", "complaint": "uw klacht",
         "support": "uw verzoek", "other": "uw bericht"},
    ),
    "ja": Phrases(
        "{name} 様", "お客様", "お問い合わせいただきありがとうございます。", "{topic}を承りました。確認を進めております。",
        "このたびはご不便をおかけし、申し訳ございません。{topic}は担当者が確認いたします。",
        "お急ぎの件として承りました。", "ご連絡いただきありがとうございます。", "弊社の資料より：",
        "内容を確認でき次第、あらためてご連絡いたします。", "よろしくお願いいたします。",
        {"billing": "ご請求に関するご質問", "sales": "お問い合わせ", "feature_request": "ご要望", "complaint": "ご意見",
         "support": "ご依頼", "other": "ご連絡"},
    ),
    "zh": Phrases(
        "{name}，您好：", "您好：", "感谢您的来信。", "我们已收到{topic}，正在处理。", "对于给您带来的不便，我们深表歉意。{topic}将由专人处理。",
        "我们已将您的来信标记为紧急。", "感谢您告知我们。", "摘自我们的文档：", "核实详情后，我们会尽快与您联系。", "此致敬礼",
        {"billing": "您的账单问题", "sales": "您的咨询", "feature_request": "您的建议", "complaint": "您的投诉",
            "support": "您的请求", "other": "您的来信"},
    ),
    "ru": Phrases(
        "Здравствуйте, {name}!", "Здравствуйте!", "Спасибо за ваше сообщение.", "Мы получили {topic} и уже "
            "занимаемся этим.",
        "Нам жаль, что так произошло. {topic} рассмотрит наш сотрудник.", "Мы отметили ваше сообщение как срочное.",
        "Спасибо за информацию.", "Из нашей документации:", "Мы напишем вам, как только проверим "
            "детали.", "С уважением",
        {"billing": "ваш вопрос об оплате", "sales": "ваш запрос", "feature_request": "ваше предложение",
            "complaint": "вашу жалобу",
         "support": "ваше обращение", "other": "ваше сообщение"},
    ),
}  # fmt: skip
"""Languages that the rules can write; a mail in another one is answered in English."""
FALLBACK = "en"


def write_reply(
    language: str, category: str, *, name: str, urgent: bool, informs: bool, passage: str, signature: str
) -> str:
    """A reply in `language` for a mail of `category`. `passage` is quoted, `signature` closes it."""
    words = LANGUAGES.get(language, LANGUAGES[FALLBACK])
    topic = words.topics.get(category, words.topics["other"])
    line = words.complaint if category == "complaint" else words.information if informs else words.about
    text = line.format(topic=topic)
    sentences = [text[:1].upper() + text[1:], *([words.urgent] if urgent else [])]
    greeting = words.greeting.format(name=_spoken(name)) if name else words.greeting_nameless
    parts = [greeting, words.thanks, " ".join(sentences)]
    if passage:
        parts.append(f"{words.passage}\n> " + passage.replace("\n", "\n> "))
    if not informs:
        parts.append(words.next_step)
    parts.append(words.closing + (f"\n{signature}" if signature else ""))
    return "\n\n".join(parts)


def _spoken(name: str) -> str:
    """A name in the order in which it is spoken: `Family, Given` becomes `Given Family`."""
    family, comma, given = name.partition(",")
    return f"{given.strip()} {family.strip()}" if comma and given.strip() and "," not in given else name
